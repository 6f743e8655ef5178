-- +goose Up
CREATE TABLE orders (id integer PRIMARY KEY, state text);
-- +goose Down
DROP TABLE orders;
