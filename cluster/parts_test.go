package cluster

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/cluster/founding"
)

func TestConfigNamesAllMistakes(t *testing.T) {
	_, err := Start(Config{
		Zone: strings.Repeat("z", 300), Advertise: "nowhere", Join: []string{"x", ":1"},
		Settings: founding.Settings{Solo: true, Voters: 2, Grace: -1},
		Logger:   slog.New(slog.DiscardHandler),
	})
	if err == nil {
		t.Fatal("accepted")
	}
	for _, field := range []string{"Name", "Label", "Zone", "Advertise", "Key", "Join", "Solo", "Voters",
		"SessionTTL", "Host"} {
		if !strings.Contains(err.Error(), field) {
			t.Errorf("the error does not name %s:\n%v", field, err)
		}
	}
}

func TestOnlyAnInstanceThatGossipsNeedsGossip(t *testing.T) {
	for solo, needs := range map[bool]bool{true: false, false: true} {
		_, err := Start(Config{Settings: founding.Settings{Solo: solo, Replicas: 3}})
		if err == nil || strings.Contains(err.Error(), "Gossip must be set") != needs {
			t.Errorf("Solo is %v, and the error is %v", solo, err)
		}
	}
}

func TestFinderTriesAllInTurnAndForgetsNoneSoon(t *testing.T) {
	f := newFinder("self:1")
	for i := range 20 {
		f.remember(fmt.Sprintf("old-%d:1", i))
	}
	f.remember("self:1")
	tried := map[string]int{}
	now := time.Duration(0)
	for range 20 {
		got := f.due(now, []string{"join:1", "self:1"}, []string{"old-3:1"}, 0)
		if len(got) > rejoinMany {
			t.Fatalf("%d attempts in one round", len(got))
		}
		for _, addr := range got {
			tried[addr]++
			delete(f.busy, addr)
		}
		now += 2 * rejoinEvery
	}
	if len(tried) != 20 || tried["self:1"] != 0 || tried["old-3:1"] != 0 || tried["join:1"] == 0 {
		t.Errorf("tried %v, want all but itself and the one that gossip sees", tried)
	}
	f.next = now + time.Hour
	f.met("new:1", now)
	f.met("new:1", now)
	if got := f.due(now, nil, nil, 0); !slices.Equal(got, []string{"new:1"}) {
		t.Errorf("after meeting an instance due is %v", got)
	}
	delete(f.busy, "new:1")
	f.met("new:1", now+rejoinPause/2)
	if got := f.due(now+rejoinPause/2, nil, nil, 0); len(got) != 0 {
		t.Errorf("tried again at once: %v", got)
	}
	for i := range 2 * maxAddrs {
		f.remember(fmt.Sprintf("more-%d:1", i))
	}
	if len(f.known) != maxAddrs {
		t.Errorf("%d addresses are remembered, want %d", len(f.known), maxAddrs)
	}
}
