//! The first thing a newcomer runs.

use crate::support::relay::Relay;

#[tokio::test]
async fn the_playground_delivers_to_all_four_platforms_and_exits_with_0() {
    let output = tokio::process::Command::new(Relay::binary())
        .args(["playground", "--once", "--json"])
        .output()
        .await;
    let output = output.unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["delivered"], 4);
    assert_eq!(report["devices"].as_array().unwrap().len(), 4);
    assert!(report["url"].as_str().unwrap().starts_with("http://127.0.0.1:"));
}
