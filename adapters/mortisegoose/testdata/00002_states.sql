-- +goose Up
INSERT INTO orders (id, state) VALUES (1, 'paid');
-- +goose Down
DELETE FROM orders;
