package main

import (
	"time"

	"github.com/mortise-lock/mortise"
)

// request is a line of the instance's input. The answer carries its ID. Answers come in any order.
type request struct {
	ID     int
	Op     string // lock, keep, check, unlock, ready, status, members, health, grow, later or quiet
	Key    string
	Keys   []string      // of a lock, instead of Key
	Path   string        // of a lock, instead of Key
	As     string        // name of the lock for later requests; empty means Key
	Within time.Duration // the time limit of requests that wait
}

// event is a line of the instance's output: "ready", once, "answer" to a request, or "gone".
type event struct {
	Kind   string
	ID     int
	Err    string
	Token  uint64 `json:",string"`
	Status *mortise.Status
	Text   string
}
