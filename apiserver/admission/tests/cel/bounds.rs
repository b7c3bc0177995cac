//! The cost limit of expressions, and that nothing runs beyond it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use drydock_admission::cel::library::{BlockingAuthorizer, UserAuthorizer, authorizer};
use drydock_admission::cel::{Activation, Expression, OUT_OF_BUDGET, stack};
use drydock_serving::auth::authz::AuthorizationAttributes;
use drydock_serving::request::user::User;

use super::{VARIABLES, activation, fails, holds};

#[test]
fn no_expression_takes_more_than_its_share() {
    let many = "[1,2,3,4,5,6,7,8,9,10]";
    let nested = format!(
        "{many}.all(a, {many}.all(b, {many}.all(c, {many}.all(d, {many}.all(e, {many}.all(f, true))))))"
    );
    fails(&nested, "operation cancelled: actual cost limit exceeded");
    // Doubling: each iteration makes a string twice as long.
    let doubled = format!("['xxxxxxxxxxxxxxxx']{}.size() == 1", ".map(t, t + t)".repeat(40));
    fails(&doubled, "operation cancelled: actual cost limit exceeded");
    let replaced =
        format!("'{0}'.replace('x', '{0}').replace('x', '{0}').replace('x', '{0}') == ''", "x".repeat(400));
    fails(&replaced, "operation cancelled: actual cost limit exceeded");
    // The host too allows this many authorizer checks in one expression, and no more.
    let ask = "authorizer.path('/').check('get').allowed()";
    holds(&format!("!{ask} && !{ask}"));
    fails(&format!("{ask} || {ask} || {ask}"), "operation cancelled: actual cost limit exceeded");
    holds(&format!("{many}.all(i, 'abc'.matches('^[a-z]+$') && matches('1', '[0-9]'))"));
    let patterns = format!(
        "{many}.all(i, {many}.all(j, {many}.all(k, 'a'.matches('^a|' + string(i) + '.' + string(j) + '.' + string(k)))))"
    );
    fails(&patterns, "operation cancelled: actual cost limit exceeded");
    let masked = format!("{} || true", nested);
    fails(&masked, "operation cancelled: actual cost limit exceeded");
    let bytes = format!("[b'xxxxxxxxxxxxxxxx']{}.size() == 1", ".map(t, t + t)".repeat(40));
    fails(&bytes, "operation cancelled: actual cost limit exceeded");
    let mut poor = activation(&[], 10);
    let walk = Expression::compile("object.spec.hosts.all(h, h.size() == 1)", &VARIABLES).unwrap();
    assert_eq!(poor.evaluate(&walk), Err(OUT_OF_BUDGET.to_owned()));
}

/// Counts authorizer checks.
struct CountedChecks(AtomicUsize);

impl BlockingAuthorizer for CountedChecks {
    fn authorize(&self, _: &User, _: &AuthorizationAttributes) -> Result<(bool, String), String> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Ok((false, String::new()))
    }
}

#[test]
fn nothing_runs_on_after_an_overdraft_whatever_absorbs_errors() {
    let counts = Arc::new(CountedChecks(AtomicUsize::new(0)));
    let ask = "authorizer.path('/').check('get').allowed()";
    for text in [
        format!("[1, 2, 3, 4, 5, 6, 7, 8].exists(i, {ask})"),
        format!("[1, 2, 3, 4, 5, 6, 7, 8].all(i, !{ask}) || {ask} || {ask} || true"),
        format!("[1, 2, 3, 4, 5, 6, 7, 8].exists_one(i, {ask}) ? true : [{ask}][?0].orValue(true)"),
        format!("{{'a': 1, 'b': 2, 'c': 3, 'd': 4}}.exists(k, v, {ask})"),
    ] {
        let expression = Expression::compile(&text, &VARIABLES).unwrap();
        let user_authorizer = UserAuthorizer::new(Arc::new(User::default()), counts.clone());
        counts.0.store(0, Ordering::Relaxed);
        let answer = stack::on_large_stack(|| {
            let variables = vec![("authorizer", authorizer(user_authorizer))];
            let mut activation = Activation::new(variables, Arc::new([]), 10_000_000).unwrap();
            activation.evaluate(&expression).unwrap()
        });
        let error = answer.unwrap().unwrap_err();
        assert!(error.ends_with("operation cancelled: actual cost limit exceeded"), "{text}: {error}");
        assert_eq!(counts.0.load(Ordering::Relaxed), 2, "{text}");
    }
}

#[test]
fn what_takes_more_than_its_operands_are_large_is_paid_before_it_is_done() {
    let twelve = "lists.range(1200)";
    for text in [
        "lists.range(10000).exists(i, lists.range(1000000).size() < 0)".to_owned(),
        format!("sets.contains({twelve}, {twelve})"),
        format!("sets.equivalent({twelve}, {twelve})"),
        format!("sets.intersects({twelve}, lists.range(1200).map(i, -1 - i))"),
        format!("{twelve}.distinct().size() == 1200"),
        format!(
            "['{0}'].map(t, t.replace('', t)).map(t, t.replace('', t))[0].split('').size() == 0",
            "x".repeat(300)
        ),
        format!("lists.range(2000).all(i, !'{}'.contains('yy'))", "x".repeat(20_000)),
    ] {
        fails(&text, "operation cancelled: actual cost limit exceeded");
    }
    holds("sets.contains(lists.range(300), lists.range(300)) && lists.range(300).distinct().size() == 300");
    // Each sum would be a longer string than the one before.
    fails("['a', 'b'].sum() == 'ab'", "no such overload");
    holds("[duration('1s'), duration('2s')].sum() == duration('3s') && [1.5, 2.0].sum() == 3.5");
}
