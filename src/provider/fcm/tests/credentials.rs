//! Credentials that are replaced while pushes go on.

use super::*;

#[tokio::test]
async fn new_credentials_start_a_new_generation() {
    let world = World::start().await;
    let old = world.provider.scope(Platform::Android).unwrap();
    assert_eq!(world.provider.scope(Platform::Ios), None);
    let endpoint = reqwest::Url::parse(&world.simulators.fcm.endpoint()).unwrap();
    let account = crate::config::ServiceAccount {
        project_id: "p".into(),
        client_email: "e".into(),
        private_key: Redacted::new("none"),
        private_key_id: None,
        token_uri: endpoint.clone(),
    };
    let broken = FcmConfig {
        account: Some(account),
        endpoint: endpoint.clone(),
        extra_ca: None,
    };
    assert!(matches!(world.provider.reload(broken), Err(FcmError::Key)));
    assert_eq!(
        world.provider.scope(Platform::Android),
        Some(old),
        "a broken key changes nothing"
    );
    world.provider.reload(world.config(None)).unwrap();
    assert_eq!(world.provider.scope(Platform::Android), None);
    world
        .provider
        .reload(world.config(Some(world.account())))
        .unwrap();
    let scope = world.provider.scope(Platform::Android).unwrap();
    assert!(
        scope.generation > 0,
        "what was taken away and given back is new as well"
    );
    assert!(matches!(world.push().await, Outcome::Sent { .. }));
}

#[tokio::test]
async fn credentials_are_replaced_without_losing_a_push_under_way() {
    let world = World::start().await;
    world.simulators.fcm.script().hold(true);
    let replace = async {
        under_way(&world, 1).await;
        world
            .provider
            .reload(world.config(Some(world.account())))
            .unwrap();
        world.simulators.fcm.script().hold(false);
    };
    let (outcome, ()) = tokio::join!(world.push(), replace);
    assert!(matches!(outcome, Outcome::Sent { .. }));
    assert_eq!(world.provider.scope(Platform::Android).unwrap().generation, 1);
}
