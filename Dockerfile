# Build: the full Rust image, since the allocator's and the cryptography library's C parts need make and a compiler.
FROM rust:1.95-trixie AS build
WORKDIR /source
COPY . .
# Without the playground and the simulators: they belong on a developer's machine.
RUN cargo build --release --locked --no-default-features --bin sovereign-relay \
    && mkdir /state

# Run: glibc, root certificates and nothing else. No shell and no package manager means nothing there to patch or to
# abuse; what a shell would be wanted for, `sovereign-relay check-config` and `healthcheck` answer.
FROM gcr.io/distroless/cc-debian13:nonroot
LABEL org.opencontainers.image.title="Sovereign Relay" \
      org.opencontainers.image.source="https://github.com/sovereignfs/sovereign-relay" \
      org.opencontainers.image.licenses="AGPL-3.0-or-later"
COPY --from=build /source/target/release/sovereign-relay /usr/local/bin/sovereign-relay
COPY --from=build /source/LICENSE /usr/share/doc/sovereign-relay/LICENSE
# The embedded store, and the secrets that the relay makes itself. Owned by `nonroot`, so that a fresh named volume is.
COPY --from=build --chown=65532:65532 /state /var/lib/sovereign-relay
VOLUME /var/lib/sovereign-relay
USER 65532:65532
# 4002: the public API. 4003, metrics and the admin API, stays on the container's loopback unless configured otherwise.
EXPOSE 4002
# The relay drains on SIGTERM and is gone within 20 s: give it `--stop-timeout 30`.
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=10s --retries=3 CMD ["/usr/local/bin/sovereign-relay", "healthcheck"]
ENTRYPOINT ["/usr/local/bin/sovereign-relay"]
CMD ["serve"]
