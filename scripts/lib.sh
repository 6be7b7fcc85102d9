# Helpers of scripts/test. Sourced, with the repository's root as the working directory.

# Versions are fixed, so that a tool's release can't break a commit that was green.
declare -A TOOL_VERSIONS=(
  [cargo-nextest]=0.9.143
  [cargo-deny]=0.20.2
  [cargo-machete]=0.9.2
)
TOOLS="$PWD/target/tools"
export PATH="$PATH:$TOOLS/bin"
export CARGO_TERM_COLOR="${CARGO_TERM_COLOR:-never}"

# step NAME COMMAND...: says what runs and how long it took; what the command prints is let through.
step() {
  local name="$1" began="$SECONDS"
  shift
  echo "== $name"
  if "$@"; then
    echo "== $name: passed in $((SECONDS - began)) s"
  else
    echo "== $name: FAILED after $((SECONDS - began)) s" >&2
    exit 1
  fi
}

# need_tool NAME: takes the one on PATH, else builds it once without optimization, which is quickest.
need_tool() {
  command -v "$1" >/dev/null && return
  step "installing $1" cargo install "$1" --version "${TOOL_VERSIONS[$1]}" --locked --debug --quiet --root "$TOOLS"
}

# One test is a Node program that does what a deployed instance does; the web client is built and tested with it, too.
need_node() {
  if ! command -v npm >/dev/null && command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
    step "installing npm" install_package npm
  fi
  if ! command -v npm >/dev/null; then
    echo "Node with npm is needed; see https://nodejs.org" >&2
    exit 1
  fi
  node_is_new_enough || own_node
}

# Distributions carry older ones. npm has Node itself as a package.
own_node() {
  local home="$TOOLS/node"
  export PATH="$home/node_modules/.bin:$PATH"
  node_is_new_enough && return
  mkdir -p "$home"
  step "installing Node $NODE_VERSION" npm install --prefix "$home" --no-audit --no-fund --silent "node@$NODE_VERSION"
  hash -r
  node_is_new_enough
}

NODE_VERSION=22.23.3

node_is_new_enough() {
  node -e "$NODE_IS_NEW_ENOUGH" 2>/dev/null
}

NODE_IS_NEW_ENOUGH='const [major, minor] = process.versions.node.split(".").map(Number);
process.exit(major > 20 || (major === 20 && minor >= 19) ? 0 : 1)'

# What web/package-lock.json names, unless it is there already.
need_web_modules() {
  local installed=web/node_modules/.package-lock.json
  if [ ! -e "$installed" ] || [ web/package-lock.json -nt "$installed" ]; then
    step "installing the web client's tools" npm --prefix web ci --no-audit --no-fund --silent
  fi
}

install_package() {
  [ -n "${PACKAGES_ARE_LISTED:-}" ] || apt-get update -qq
  PACKAGES_ARE_LISTED=yes
  apt-get install -y -qq --no-install-recommends "$1" >/dev/null
}

# need_program NAME PACKAGE WHAT URL: takes the one on PATH, else Debian's package.
need_program() {
  if ! command -v "$1" >/dev/null && command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
    step "installing $2" install_package "$2"
  fi
  if ! command -v "$1" >/dev/null; then
    echo "$1 is needed for the tests of $3; see $4" >&2
    exit 1
  fi
}

# Others run the curl lines that the README and the playground show, ask a real TURN server whether it takes the
# credentials that the relay gives out, share real Redis servers, some of whose clocks are moved, keep a key in a real
# Secret Service, call the apps' library from Python, and try each file in deploy/ with the program it is for.
need_programs() {
  need_program curl curl "the README" https://curl.se
  need_program turnserver coturn "TURN credentials" https://github.com/coturn/coturn
  need_program caddy caddy deploy/Caddyfile https://caddyserver.com
  need_program redis-server redis-server replicas https://redis.io
  need_program faketime faketime replicas https://github.com/wolfcw/libfaketime
  need_valkey
  need_program docker-compose docker-compose deploy/docker-compose.yml https://docs.docker.com/compose
  need_program systemd-analyze systemd deploy/sovereign-relay.service https://systemd.io
  need_program dbus-run-session dbus-daemon "the operating system's key store" https://dbus.freedesktop.org
  need_program gnome-keyring-daemon gnome-keyring "the operating system's key store" https://gitlab.gnome.org/GNOME/gnome-keyring
  need_program python3 python3 "what apps call" https://python.org
  need_program java default-jdk-headless "the sealed payload in Java" https://openjdk.org
  need_python_cryptography
}

# The sealed payload is made and opened in Python, too.
need_python_cryptography() {
  if ! find_python_cryptography && command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
    step "installing python3-cryptography" install_package python3-cryptography
  fi
  if ! find_python_cryptography; then
    echo "Python with its library cryptography is needed for the sealed payload; see https://cryptography.io" >&2
    exit 1
  fi
}

find_python_cryptography() {
  python3 -c "import cryptography" || /usr/bin/python3 -c "import cryptography"
} 2>/dev/null

# The instance's store is tested on a server of the test's own. Debian keeps initdb and postgres off the PATH, and would
# start a cluster when it installs them.
need_postgres() {
  if ! find_postgres && command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
    step "installing PostgreSQL" install_postgres
  fi
  if ! find_postgres; then
    echo "PostgreSQL is needed for the tests of the instance's store; see https://www.postgresql.org" >&2
    exit 1
  fi
}

find_postgres() {
  command -v initdb || compgen -G '/usr/lib/postgresql/*/bin/initdb'
} >/dev/null

install_postgres() {
  install_package postgresql-common
  sed -i 's/^#*create_main_cluster.*/create_main_cluster = false/' /etc/postgresql-common/createcluster.conf
  install_package postgresql
}

# What deploy/docker-compose.yml has in Redis' place.
need_valkey() {
  export PATH="$PATH:$TOOLS/valkey/usr/bin"
  if ! command -v valkey-server >/dev/null && command -v apt-get >/dev/null; then
    if [ "$(id -u)" = 0 ] && apt-get install --simulate valkey-server >/dev/null 2>&1; then
      step "installing valkey-server" install_package valkey-server
    else
      step "fetching Valkey" fetch_valkey
    fi
  fi
  if ! command -v valkey-server >/dev/null; then
    echo "valkey-server is needed for the tests of replicas; see https://valkey.io" >&2
    exit 1
  fi
}

# Debian 12 has it in its backports only: it is unpacked beside the other tools, with lists of its own, so that nothing of
# the system changes. The libraries it needs are those of redis-server.
fetch_valkey() {
  local home="$TOOLS/valkey" package
  mkdir -p "$home/lists/partial" "$home/cache/archives/partial"
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian bookworm-backports main" \
    >"$home/sources.list"
  local own=(-qq -o "Dir::Etc::SourceList=$home/sources.list" -o Dir::Etc::SourceParts=/dev/null
    -o "Dir::State::Lists=$home/lists" -o "Dir::Cache=$home/cache" -o APT::Sandbox::User=root)
  apt-get "${own[@]}" update
  (cd "$home" && apt-get "${own[@]}" download valkey-server valkey-tools)
  for package in "$home"/*.deb; do
    dpkg-deb --extract "$package" "$home"
  done
}

# One more has two tabs of a real browser connect.
need_browser() {
  if ! find_browser && command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
    step "installing Chromium" install_package chromium
  fi
  if ! find_browser; then
    echo "Chromium is needed for the test of the playground's page; see https://www.chromium.org" >&2
    exit 1
  fi
}

find_browser() {
  command -v chromium || command -v chromium-browser || command -v google-chrome
} >/dev/null

# A walk through the tree that names a file which is gone sends its reader astray.
check_paths() {
  local gone=0 path root
  for path in $(grep -oE '`[a-z0-9/_]+\.rs`' docs/ARCHITECTURE.md | tr -d '`' | sort -u); do
    for root in . src src/http src/http/extract src/provider src/store/redis actors/src client/src/signal instance/src; do
      [ -e "$root/$path" ] && continue 2
    done
    echo "docs/ARCHITECTURE.md names $path, which does not exist" >&2
    gone=1
  done
  return "$gone"
}
