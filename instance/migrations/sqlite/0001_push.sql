-- Times are Unix seconds. IF NOT EXISTS, because a host may have made the first two tables itself.

CREATE TABLE IF NOT EXISTS push_device_tokens (
    id TEXT NOT NULL PRIMARY KEY,
    tenant_id TEXT NOT NULL DEFAULT 'default',
    user_id TEXT NOT NULL,
    platform TEXT NOT NULL,
    device_token TEXT NOT NULL UNIQUE,
    public_key TEXT NOT NULL,
    relay_url TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    last_used_at INTEGER
);
CREATE INDEX IF NOT EXISTS push_device_tokens_of_user ON push_device_tokens (tenant_id, user_id);

CREATE TABLE IF NOT EXISTS push_subscriptions (
    id TEXT NOT NULL PRIMARY KEY,
    tenant_id TEXT NOT NULL DEFAULT 'default',
    user_id TEXT NOT NULL,
    endpoint TEXT NOT NULL UNIQUE,
    p256dh TEXT NOT NULL,
    auth TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    last_used_at INTEGER
);
CREATE INDEX IF NOT EXISTS push_subscriptions_of_user ON push_subscriptions (tenant_id, user_id);

CREATE TABLE push_relays (
    relay_url TEXT NOT NULL PRIMARY KEY,
    instance_id TEXT,
    instance_key TEXT,
    previous_key TEXT,
    state TEXT NOT NULL,
    enrolled_at INTEGER,
    attempts INTEGER NOT NULL,
    next_attempt_at INTEGER NOT NULL,
    note TEXT NOT NULL
);

CREATE TABLE push_outbox (
    id TEXT NOT NULL PRIMARY KEY,
    notification_id TEXT NOT NULL,
    tenant_id TEXT NOT NULL,
    user_id TEXT NOT NULL,
    channel TEXT NOT NULL,
    target_id TEXT NOT NULL,
    target_created_at INTEGER NOT NULL,
    target_public_key TEXT NOT NULL,
    platform TEXT,
    address TEXT NOT NULL,
    relay_url TEXT,
    sealed TEXT NOT NULL,
    priority TEXT NOT NULL,
    collapse_id TEXT,
    ttl_until INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    first_attempt_at INTEGER,
    next_attempt_at INTEGER NOT NULL,
    leased_until INTEGER NOT NULL
);
CREATE INDEX push_outbox_due ON push_outbox (next_attempt_at, leased_until);
CREATE INDEX push_outbox_expiring ON push_outbox (ttl_until);
CREATE INDEX push_outbox_of_notification ON push_outbox (notification_id);
CREATE INDEX push_outbox_of_target ON push_outbox (target_id);
CREATE INDEX push_outbox_of_user ON push_outbox (tenant_id, user_id);

CREATE TABLE push_delivery_log (
    id TEXT NOT NULL PRIMARY KEY,
    notification_id TEXT NOT NULL,
    tenant_id TEXT NOT NULL,
    user_id TEXT NOT NULL,
    channel TEXT NOT NULL,
    target_id TEXT NOT NULL,
    platform TEXT,
    relay_host TEXT,
    outcome TEXT NOT NULL,
    reason TEXT NOT NULL,
    at INTEGER NOT NULL,
    attempt INTEGER NOT NULL
);
CREATE INDEX push_delivery_log_of_user ON push_delivery_log (tenant_id, user_id, at);
CREATE INDEX push_delivery_log_by_age ON push_delivery_log (at);

CREATE TABLE push_settings (
    name TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
);
