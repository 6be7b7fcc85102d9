//! The page and its worker, as files inside the binary.
//!
//! A page of no dependencies and one policy: nothing from elsewhere, nothing inline, no frame around it.

use actix_web::{
    HttpResponse,
    http::header,
    middleware::DefaultHeaders,
    web::{self, ServiceConfig},
};

/// Path, type, text.
const FILES: [(&str, &str, &str); 4] = [
    ("/", "text/html; charset=utf-8", include_str!("page/index.html")),
    (
        "/page.css",
        "text/css; charset=utf-8",
        include_str!("page/page.css"),
    ),
    (
        "/page.js",
        "text/javascript; charset=utf-8",
        include_str!("page/page.js"),
    ),
    (
        "/push-worker.js",
        "text/javascript; charset=utf-8",
        include_str!("page/push-worker.js"),
    ),
];

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; worker-src 'self'; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

/// Headers of every answer.
pub(crate) fn headers() -> DefaultHeaders {
    DefaultHeaders::new()
        .add((header::CONTENT_SECURITY_POLICY, POLICY))
        .add((header::REFERRER_POLICY, "no-referrer"))
        .add((header::X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .add((header::X_FRAME_OPTIONS, "DENY"))
        .add((header::CACHE_CONTROL, "no-store"))
        .add(("cross-origin-opener-policy", "same-origin"))
        .add(("cross-origin-resource-policy", "same-origin"))
}

/// Serves the files.
pub(crate) fn mount(services: &mut ServiceConfig) {
    for (path, kind, text) in FILES {
        let answer = move || async move { HttpResponse::Ok().content_type(kind).body(text) };
        services.route(path, web::get().to(answer));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_nothing_that_its_policy_forbids() {
        let (_, _, html) = FILES[0];
        for forbidden in [
            "<style",
            " style=",
            "onclick",
            "<script>",
            "javascript:",
            "http://",
            "https://",
            "<base",
        ] {
            assert!(!html.contains(forbidden), "{forbidden}");
        }
        let (_, _, script) = FILES[2];
        for forbidden in [
            "innerHTML",
            "outerHTML",
            "eval(",
            "insertAdjacentHTML",
            "document.write",
            "new Function",
        ] {
            assert!(!script.contains(forbidden), "{forbidden}");
        }
    }

    #[test]
    fn all_that_the_page_asks_for_is_served() {
        for asked in ["/page.css", "/page.js", "/push-worker.js"] {
            assert!(FILES.iter().any(|(path, _, _)| *path == asked));
            assert!(
                FILES
                    .iter()
                    .any(|(_, _, text)| text.contains(&format!("\"{asked}\"")))
            );
        }
    }
}
