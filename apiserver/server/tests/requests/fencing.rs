//! Writes that carry a fencing token.

use drydock_storage::backend::prefix_range;
use drydock_storage::fence::Fences;
use serde_json::{Value, json};

use crate::fixture::{Answer, GADGETS, Server};

async fn patch(server: &Server, user: &str, term: &str, query: &str) -> Answer {
    let headers =
        [("x-user", user), ("drydock-lease-epoch", term), ("content-type", "application/merge-patch+json")];
    // Each write changes something: a write that changes nothing is not stored.
    let labels = json!({"term": format!("t{term}"), "write": uuid::Uuid::new_v4().to_string()});
    let body = json!({"metadata": {"labels": labels}}).to_string();
    server.send("PATCH", &format!("{GADGETS}/a{query}"), &headers, &body).await
}

async fn label(server: &Server) -> Value {
    server.get(&format!("{GADGETS}/a")).await.expect(200)["metadata"]["labels"]["term"].clone()
}

#[tokio::test]
async fn a_write_of_an_older_term_is_refused_and_changes_nothing() {
    let server = Server::start().await;
    server.gadget("a", json!({})).await;
    patch(&server, "leader", "7", "").await.expect(200);
    patch(&server, "leader", "8", "").await.expect(200);
    let refused = patch(&server, "leader", "7", "").await.expect(409);
    assert_eq!(
        (&refused["reason"], &refused["message"]),
        (
            &json!("FencingTokenRefused"),
            &json!(
                "Operation cannot be fulfilled on gadgets.test.io \"a\": fencing token 7 is outdated; the newest is 8"
            )
        )
    );
    let causes = &refused["details"]["causes"];
    assert_eq!(causes[0], json!({"reason": "NewestFencingToken", "message": "8"}));
    assert_eq!(causes[1]["reason"], "HighestFencingToken");
    assert_eq!(label(&server).await, "t8");
    patch(&server, "leader", "8", "").await.expect(200);
    let headers = [("x-user", "leader"), ("drydock-lease-epoch", "7")];
    for (method, uri, body) in [
        ("POST", GADGETS.to_owned(), json!({"metadata": {"name": "b"}}).to_string()),
        ("DELETE", format!("{GADGETS}/a"), String::new()),
        ("DELETE", GADGETS.to_owned(), String::new()),
    ] {
        assert_eq!(server.send(method, &uri, &headers, &body).await.status, 409, "{method} {uri}");
    }
    assert_eq!(server.send("GET", &format!("{GADGETS}/a"), &headers, "").await.status, 200);
}

/// Another replica has accepted a newer token: what this one remembers does not count.
#[tokio::test]
async fn a_term_that_ended_on_another_replica_is_over_here_too() {
    let server = Server::start().await;
    server.gadget("a", json!({})).await;
    patch(&server, "leader", "7", "").await.expect(200);
    Fences::new(server.backend.clone()).enter("leader", 8, 8).await.unwrap();
    let late = patch(&server, "leader", "7", "").await;
    // The write itself was refused; the newest term is not known there.
    assert_eq!(late.expect(409)["reason"], "FencingTokenRefused");
    assert_eq!(label(&server).await, "t7");
    let told = patch(&server, "leader", "7", "").await.expect(409);
    assert!(told["message"].as_str().unwrap().contains("the newest is 8"), "{told}");
    patch(&server, "leader", "8", "").await.expect(200);
}

#[tokio::test]
async fn terms_are_of_the_user_that_writes_and_pretended_writes_begin_none() {
    let server = Server::start().await;
    server.gadget("a", json!({})).await;
    patch(&server, "second", "10", "").await.expect(200);
    patch(&server, "leader", "9", "?dryRun=All").await.expect(200);
    patch(&server, "leader", "8", "").await.expect(200);
    assert_eq!(label(&server).await, "t8");
}

/// Regression: a key was written for each user who sent a token, and stayed forever; a tenant can make any
/// number of service accounts.
#[tokio::test]
async fn a_user_who_is_no_controller_has_no_term_and_leaves_nothing_in_storage() {
    let server = Server::start().await;
    server.gadget("a", json!({})).await;
    patch(&server, "leader", "7", "").await.expect(200);
    for n in 0..20 {
        let user = format!("system:serviceaccount:tenant:{n}");
        let refused = patch(&server, &user, "9", "").await.expect(403);
        assert_eq!(refused["reason"], "Forbidden");
        assert!(refused["message"].as_str().unwrap().contains("--controller-users"), "{refused}");
    }
    let kept = server.backend.range(prefix_range("/fences/"), 0, None).await.unwrap();
    assert_eq!(kept.items.iter().map(|pair| pair.key.as_str()).collect::<Vec<_>>(), ["/fences/leader"]);
    assert_eq!(label(&server).await, "t7");
    patch(&server, "leader", "8", "").await.expect(200);
}

#[tokio::test]
async fn a_term_that_is_no_number_is_400() {
    let server = Server::start().await;
    server.gadget("a", json!({})).await;
    for term in ["", "-1", "x", "1.5", "18446744073709551616"] {
        assert_eq!(patch(&server, "leader", term, "").await.status, 400, "{term}");
    }
}

/// Regression: the clock of one leader was ten years ahead, once, and every write of the leaders after it was refused, with
/// a 409 as of a stale cache.
#[tokio::test]
async fn a_term_that_is_years_ahead_is_refused_and_the_answer_says_which_one_may_begin() {
    let server = Server::start().await;
    server.gadget("a", json!({})).await;
    let now = u64::try_from(jiff::Timestamp::now().as_microsecond()).unwrap();
    let (day, ahead) = (24 * 3_600_000_000, now + 10 * 365 * 24 * 3_600_000_000);
    let refused = patch(&server, "leader", &ahead.to_string(), "").await.expect(409);
    assert_eq!(refused["reason"], "FencingTokenRefused");
    assert!(refused["message"].as_str().unwrap().contains("more than a day ahead"), "{refused}");
    let causes = &refused["details"]["causes"];
    assert_eq!(causes[0], json!({"reason": "NewestFencingToken", "message": "0"}));
    let highest: u64 = causes[1]["message"].as_str().unwrap().parse().unwrap();
    assert!((now + day..now + day + 600_000_000).contains(&highest), "{refused}");
    patch(&server, "leader", &highest.to_string(), "").await.expect(200);
    patch(&server, "leader", &now.to_string(), "").await.expect(409);

    // One that a server of before has taken: the next one begins above it.
    Fences::new(server.backend.clone()).enter("second", ahead, ahead).await.unwrap();
    let refused = patch(&server, "second", &now.to_string(), "").await.expect(409);
    assert_eq!(refused["details"]["causes"][0]["message"], ahead.to_string());
    patch(&server, "second", &(ahead + 1).to_string(), "").await.expect(200);
}
