package main

import (
	"testing"

	"github.com/mortise-lock/mortise/internal/lab/trio"
)

func TestMain(m *testing.M) { trio.Main(m, stand) }

// TestTheLeaderIsKilled kills the process that leads, and another one leads.
func TestTheLeaderIsKilled(t *testing.T) {
	f := trio.Start(t)
	leader := f.Await(1, "this instance leads")[0]
	f.Kill(leader)
	f.Await(2, "this instance leads")
}
