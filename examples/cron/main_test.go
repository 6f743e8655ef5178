package main

import (
	"testing"

	"github.com/mortise-lock/mortise/internal/lab/trio"
)

func TestMain(m *testing.M) { trio.Main(m, schedule) }

// TestAnInstanceIsKilled kills the process that ran the first tick, and another one runs later
// ticks.
func TestAnInstanceIsKilled(t *testing.T) {
	f := trio.Start(t)
	first := f.Await(1, "this instance reports")[0]
	f.Kill(first)
	f.Await(2, "this instance reports")
}
