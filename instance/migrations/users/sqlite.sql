-- For a host that wants rows to go with its users: put your table and its key in place of users (id), and add this to
-- your own migrations, after the store was opened once. SQLite can't add a foreign key to a table that is there.
-- Hosts with tenants, or with their users elsewhere, call `Store::forget_user` instead.

CREATE TRIGGER push_follows_users AFTER DELETE ON users BEGIN
    DELETE FROM push_outbox WHERE user_id = OLD.id;
    DELETE FROM push_device_tokens WHERE user_id = OLD.id;
    DELETE FROM push_subscriptions WHERE user_id = OLD.id;
    DELETE FROM push_delivery_log WHERE user_id = OLD.id;
END;
