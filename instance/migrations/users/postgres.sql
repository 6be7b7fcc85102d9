-- For a host that wants rows to go with its users: put your table and its key in place of users (id), and add this to
-- your own migrations, after the store was opened once. The key's type must be TEXT.
-- Hosts with tenants, or with their users elsewhere, call `Store::forget_user` instead.

ALTER TABLE push_device_tokens ADD FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE;
ALTER TABLE push_subscriptions ADD FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE;
ALTER TABLE push_outbox ADD FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE;
ALTER TABLE push_delivery_log ADD FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE;
