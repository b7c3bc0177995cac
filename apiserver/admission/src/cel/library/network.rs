//! IP addresses and networks (k8s.io/apiserver pkg/cel/library/ip.go, cidr.go).

use std::net::{IpAddr, Ipv4Addr};

use cel::common::types::{CelBool, CelInt, CelString, STRING_TYPE};
use cel::common::value::{CowVal, Val};
use cel::{DeclarationError, Env, ExecutionError};
use drydock_machinery::quote::go_quote;
use ipnet::IpNet;

use super::{argument, opaque};

/// An IP address.
#[derive(Clone, Debug, PartialEq)]
struct Ip(IpAddr);

/// A network: an address and the length of its prefix.
#[derive(Clone, Debug, PartialEq)]
struct Cidr(IpNet);

opaque!(Ip, IP_TYPE, "net.IP");
opaque!(Cidr, CIDR_TYPE, "net.CIDR");

/// Declares the functions of this library.
pub fn declare(env: &mut Env) -> Result<(), DeclarationError> {
    let (ip, cidr) = (|| Ip::cel_type().to_owned(), || Cidr::cel_type().to_owned());
    let text = || vec![STRING_TYPE];
    env.add_overload("ip", "string_to_ip", text(), |args| Ok(CowVal::owned(address_of(&args, 0)?)))?;
    env.add_overload("isIP", "is_ip", text(), |args| truth(parse_ip(text_of(&args, 0)?).is_ok()))?;
    env.add_overload("ip.isCanonical", "ip_is_canonical", text(), |args| {
        truth(address_of(&args, 0)?.0.to_string() == text_of(&args, 0)?)
    })?;
    env.add_overload("string", "ip_to_string", vec![ip()], |args| {
        Ok(CowVal::owned(CelString::from(argument::<Ip>(&args, 0)?.0.to_string())))
    })?;
    env.add_member_overload("family", "ip_family", ip(), vec![], |args| {
        number(if argument::<Ip>(&args, 0)?.0.is_ipv4() { 4 } else { 6 })
    })?;
    env.add_member_overload("isUnspecified", "ip_is_unspecified", ip(), vec![], |args| {
        truth(argument::<Ip>(&args, 0)?.0.is_unspecified())
    })?;
    env.add_member_overload("isLoopback", "ip_is_loopback", ip(), vec![], |args| {
        truth(argument::<Ip>(&args, 0)?.0.is_loopback())
    })?;
    env.add_member_overload("isLinkLocalMulticast", "ip_is_link_local_multicast", ip(), vec![], |args| {
        truth(is_link_local_multicast(argument::<Ip>(&args, 0)?.0))
    })?;
    env.add_member_overload("isLinkLocalUnicast", "ip_is_link_local_unicast", ip(), vec![], |args| {
        truth(is_link_local(argument::<Ip>(&args, 0)?.0))
    })?;
    env.add_member_overload("isGlobalUnicast", "ip_is_global_unicast", ip(), vec![], |args| {
        truth(is_global(argument::<Ip>(&args, 0)?.0))
    })?;

    env.add_overload("cidr", "string_to_cidr", text(), |args| Ok(CowVal::owned(network_of(&args, 0)?)))?;
    env.add_overload("isCIDR", "is_cidr", text(), |args| truth(parse_cidr(text_of(&args, 0)?).is_ok()))?;
    env.add_overload("string", "cidr_to_string", vec![cidr()], |args| {
        Ok(CowVal::owned(CelString::from(argument::<Cidr>(&args, 0)?.0.to_string())))
    })?;
    env.add_member_overload("containsIP", "cidr_contains_ip_string", cidr(), text(), |args| {
        truth(argument::<Cidr>(&args, 0)?.0.contains(&address_of(&args, 1)?.0))
    })?;
    env.add_member_overload("containsIP", "cidr_contains_ip_ip", cidr(), vec![ip()], |args| {
        truth(argument::<Cidr>(&args, 0)?.0.contains(&argument::<Ip>(&args, 1)?.0))
    })?;
    env.add_member_overload("containsCIDR", "cidr_contains_cidr_string", cidr(), text(), |args| {
        truth(argument::<Cidr>(&args, 0)?.0.contains(&network_of(&args, 1)?.0))
    })?;
    env.add_member_overload("containsCIDR", "cidr_contains_cidr", cidr(), vec![cidr()], |args| {
        truth(argument::<Cidr>(&args, 0)?.0.contains(&argument::<Cidr>(&args, 1)?.0))
    })?;
    env.add_member_overload("ip", "cidr_ip", cidr(), vec![], |args| {
        Ok(CowVal::owned(Ip(argument::<Cidr>(&args, 0)?.0.addr())))
    })?;
    env.add_member_overload("prefixLength", "cidr_prefix_length", cidr(), vec![], |args| {
        number(argument::<Cidr>(&args, 0)?.0.prefix_len().into())
    })?;
    env.add_member_overload("masked", "cidr_masked", cidr(), vec![], |args| {
        Ok(CowVal::owned(Cidr(argument::<Cidr>(&args, 0)?.0.trunc())))
    })
}

/// Go's netip.Addr.IsLinkLocalMulticast.
fn is_link_local_multicast(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(it) => it.octets()[..3] == [224, 0, 0],
        IpAddr::V6(it) => it.segments()[0] & 0xff0f == 0xff02,
    }
}

fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(it) => it.is_link_local(),
        IpAddr::V6(it) => it.is_unicast_link_local(),
    }
}

/// Go's netip.Addr.IsGlobalUnicast, for which private addresses are global too.
fn is_global(address: IpAddr) -> bool {
    let broadcast = address == IpAddr::V4(Ipv4Addr::BROADCAST);
    !(broadcast
        || address.is_unspecified()
        || address.is_loopback()
        || address.is_multicast()
        || is_link_local(address))
}

fn parse_ip(text: &str) -> Result<IpAddr, String> {
    if text.contains('%') {
        return Err(format!("IP address {} with zone value is not allowed", go_quote(text)));
    }
    let address: IpAddr = text.parse().map_err(|_| {
        let quoted = go_quote(text);
        format!("IP Address {quoted} parse error during conversion from string: ParseAddr({quoted}): unable to parse IP")
    })?;
    not_mapped(address, text)
}

fn parse_cidr(text: &str) -> Result<Cidr, String> {
    let unreadable = |why: &str| {
        format!(
            "network address parse error during conversion from string: netip.ParsePrefix({}): {why}",
            go_quote(text)
        )
    };
    let (address, bits) = text.rsplit_once('/').ok_or_else(|| unreadable("no '/'"))?;
    let parsed: IpAddr = address.parse().map_err(|_| unreadable("unable to parse IP"))?;
    // The crate would also read `/08`.
    let canonical = bits == "0" || !bits.starts_with(['0', '+']);
    let bits = bits.parse::<u8>().ok().filter(|_| canonical);
    let network = bits.and_then(|bits| IpNet::new(parsed, bits).ok());
    let network = network.ok_or_else(|| unreadable("bad bits after slash"))?;
    not_mapped(parsed, text)?;
    Ok(Cidr(network))
}

fn not_mapped(address: IpAddr, text: &str) -> Result<IpAddr, String> {
    match address {
        IpAddr::V6(it) if it.to_ipv4_mapped().is_some() => {
            Err(format!("IPv4-mapped IPv6 address {} is not allowed", go_quote(text)))
        }
        _ => Ok(address),
    }
}

fn address_of(args: &[CowVal<'_, '_>], index: usize) -> Result<Ip, ExecutionError> {
    parse_ip(text_of(args, index)?).map(Ip).map_err(|why| ExecutionError::function_error("ip", why))
}

fn network_of(args: &[CowVal<'_, '_>], index: usize) -> Result<Cidr, ExecutionError> {
    parse_cidr(text_of(args, index)?).map_err(|why| {
        ExecutionError::function_error(
            "cidr",
            format!("network address parse error during conversion from string: {why}"),
        )
    })
}

fn text_of<'a>(args: &'a [CowVal<'_, '_>], index: usize) -> Result<&'a str, ExecutionError> {
    Ok(argument::<CelString>(args, index)?.inner())
}

fn truth<'b, 'v>(it: bool) -> Result<CowVal<'b, 'v>, ExecutionError> {
    Ok(CowVal::owned(CelBool::from(it)))
}

fn number<'b, 'v>(it: i64) -> Result<CowVal<'b, 'v>, ExecutionError> {
    Ok(CowVal::owned(CelInt::from(it)))
}
