//! Functions that are not part of CEL itself.

use super::{fails, holds};

#[test]
fn the_functions_of_kubernetes() {
    for text in [
        "[1, 2, 2].isSorted() && [1, 3].sum() == 4 && [3, 1].min() == 1 && ['b', 'a'].max() == 'b'",
        "[1, 2, 2, 3].indexOf(2) == 1 && [1, 2, 2, 3].lastIndexOf(2) == 2 && [3, 1, 2].sort() == [1, 2, 3]",
        "lists.range(3) == [0, 1, 2] && [1, 1].distinct() == [1] && [{'n': 2}, {'n': 1}].sortBy(e, e.n)[0].n == 1",
        "sets.contains([1, 2], [2]) && sets.equivalent([1], [1, 1]) && !sets.intersects([1], [2])",
        "'abc 123'.find('[0-9]+') == '123' && '1 2 3'.findAll('[0-9]', 2) == ['1', '2']",
        "url('https://example.com:80/a b?k=1&k=2').getHost() == 'example.com:80' && isURL('/p') && !isURL('p')",
        "url('https://[::1]:80/').getHostname() == '::1' && url('https://x/a b').getEscapedPath() == '/a%20b'",
        "url('https://x/?k1=a&k2=b&k2=c').getQuery() == {'k1': ['a'], 'k2': ['b', 'c']}",
        "quantity('1.5Gi').isGreaterThan(quantity('1500M')) && quantity('50k').asInteger() == 50000",
        "quantity('200M').sub(quantity('50M')).compareTo(quantity('150M')) == 0 && !isQuantity('1ZZ')",
        "quantity('1m').add(1).asApproximateFloat() == 1.001 && sign(quantity('-1')) == -1",
        "ip('192.168.0.1').family() == 4 && ip('::1').isLoopback() && !isIP('1.2.3.256')",
        "cidr('192.168.0.0/24').containsIP('192.168.0.9') && cidr('10.0.0.1/8').masked() == cidr('10.0.0.0/8')",
        "ip.isCanonical('::1') && string(cidr('::1/128')) == '::1/128' && cidr('10.0.0.0/8').prefixLength() == 8",
        "semver('1.2.3').isLessThan(semver('1.10.0')) && semver('v1.0', true).minor() == 0 && !isSemver('v1')",
        "semver('1.2.3+a') == semver('1.2.3+b') && semver('1.2.3-a') != semver('1.2.3-b')",
        "!format.dns1123Label().validate('my-label').hasValue()",
        "format.named('dns1123Label').value().validate('No!').value()[0].startsWith('a lowercase RFC 1123 label')",
    ] {
        holds(text);
    }
}

#[test]
fn quantities_end_where_their_range_does() {
    for text in [
        "!isQuantity('1e2147483647') && !isQuantity('1E2147483648') && !isQuantity('1e-2147483649')",
        "quantity('0e2147483647') == quantity('0') && quantity('0.5e-2147483648').compareTo(quantity('1n')) == 0",
        "quantity('-1e-2147483648').compareTo(quantity('-1n')) == 0 && quantity('100E').sub(1).isLessThan(quantity('100E'))",
        "quantity('16Ei') == quantity('9223372036854775807') && quantity('-16Ei') == quantity('-9223372036854775807')",
    ] {
        holds(text);
    }
    let low = "quantity('-99999999999E')";
    let why = "this server computes with no quantity beyond 1.7e29";
    fails(&format!("{low}.add({low}) == {low}"), why);
    fails(&format!("{low}.sub({low}.sub(1).sub({low})).sub(quantity('99999999999E')) == {low}"), why);
}

#[test]
fn networks_hold_their_own_family_and_are_written_as_go_reads_them() {
    for text in [
        "!cidr('0.0.0.0/0').containsIP('::1') && !cidr('::/0').containsCIDR('10.0.0.0/8')",
        "cidr('0.0.0.0/0').containsIP('255.255.255.255') && cidr('::/0').containsIP(ip('ffff::'))",
        "cidr('10.0.0.9/8').containsCIDR('10.1.0.0/16') && !cidr('10.1.0.0/16').containsCIDR('10.0.0.0/8')",
        "cidr('10.1.2.3/0').masked() == cidr('0.0.0.0/0') && cidr('::1/128').masked() == cidr('::1/128')",
        "string(cidr('1.2.3.4/24')) == '1.2.3.4/24' && cidr('1.2.3.4/24').ip() == ip('1.2.3.4')",
        "!isCIDR('1.2.3.4/33') && !isCIDR('::/129') && !isCIDR('1.2.3.4/08') && !isCIDR('1.2.3.4/+8') && !isCIDR('1.2.3.4/-1')",
        "!isCIDR('1.2.3.4/') && !isCIDR('/8') && !isCIDR('::ffff:1.2.3.4/96') && !isCIDR('1.2.3.4/99999999999999999999')",
        "ip('fe80::1').isLinkLocalUnicast() && ip('febf::').isLinkLocalUnicast() && !ip('fec0::').isLinkLocalUnicast()",
    ] {
        holds(text);
    }
}

#[test]
fn texts_are_searched_and_split_as_by_cel_go() {
    for text in [
        "'héllo hé'.indexOf('llo') == 2 && 'a'.indexOf('b') == -1 && 'abc'.indexOf('') == 0",
        "'hello mellow'.indexOf('ello', 2) == 7 && 'hello'.indexOf('', 2) == 2 && 'hello'.indexOf('', 20) == 5",
        "'hello mellow'.lastIndexOf('ello') == 7 && 'hello mellow'.lastIndexOf('ello', 6) == 1",
        "'hello mellow'.lastIndexOf('ello', 7) == 7 && 'hello'.lastIndexOf('') == 5 && 'ab'.lastIndexOf('b', 0) == -1",
        "'hello hello'.split(' ') == ['hello', 'hello'] && 'a b c'.split(' ', 2) == ['a', 'b c']",
        "'a b'.split(' ', 0) == [] && 'a b'.split(' ', 1) == ['a b'] && 'a b'.split(' ', -1) == ['a', 'b']",
        "'hé!'.split('') == ['h', 'é', '!'] && 'abc'.split('', 2) == ['a', 'bc'] && ''.split('') == []",
        "'ab'.replace('', '_') == '_a_b_' && 'aaa'.replace('a', 'b', 0) == 'aaa' && ['x', 'y'].join() == 'xy'",
    ] {
        holds(text);
    }
    fails("'tacocat'.indexOf('a', 30) == -1", "index out of range: 30");
    fails("'tacocat'.lastIndexOf('a', -1) == -1", "index out of range: -1");
}

#[test]
fn patterns_mean_what_they_mean_to_re2() {
    for text in [
        r"!'é'.matches('^\\w+$') && '٣'.matches('^\\D$') && !'٣'.matches('\\d') && 'é'.matches('^\\W$')",
        r"!'\u00a0'.matches('\\s') && !'\v'.matches('\\s') && 'a é'.findAll('[\\w ]') == ['a', ' ']",
        r"'éa'.find('\\ba') == 'a' && 'aé'.find('a\\b') == 'a' && 'é'.matches('^[^\\w]$')",
        r"'a[b'.matches('^[a[b]+$') && 'a&&b'.matches('^[a&&b]+$') && ']'.matches('^[]a]$') && 'k'.matches('(?i)^[[:upper:]]$')",
        r"'a.b'.matches('^\\Qa.b\\E$') && !'axb'.matches('^\\Qa.b\\E$') && 'a<b'.matches('a\\<b') && '{'.matches('^{$')",
        r"'a{,2}'.matches('^a{,2}$') && 'aa'.matches('^a{2,1000}?$') && 'A'.matches('\\101') && 'x'.matches('(?P<n>x)')",
        r"'web-0.example'.matches('^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?(\\.[a-z]+)*$') && '日'.matches('^\\p{Han}\\z')",
    ] {
        holds(text);
    }
    for (pattern, why) in [
        ("a{1001}", "invalid repeat count: `{1001}`"),
        ("a**", "invalid nested repetition operator"),
        ("(?x)a b", "invalid or unsupported Perl syntax"),
        (r"\\h", r"invalid escape sequence: `\h`"),
    ] {
        fails(&format!("'a'.matches('{pattern}')"), &format!("Illegal regex: {why}"));
    }
}
