package main

import (
	"time"

	"github.com/mortise-lock/mortise"
)

// request is a line that the instance is given; the answer carries its ID. They are answered in any
// order.
type request struct {
	ID     int
	Op     string // lock, unlock, ready, status, members, health, grow or quiet
	Key    string
	Within time.Duration // what it waits at most
}

// event is a line that the instance says: "ready" once, "answer" for a request, "left" when it has
// left.
type event struct {
	Kind   string
	ID     int
	Err    string
	Token  uint64 `json:",string"`
	Status *mortise.Status
	Text   string
}
