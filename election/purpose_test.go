package election

import (
	"strings"
	"testing"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/shown"
)

func TestALeadershipSaysThatItIsOne(t *testing.T) {
	node, err := mortise.Start(t.Context(), mortise.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer node.Close()
	for length, labelled := range map[int]bool{0: true, 12: true, labelledValue: true, labelledValue +
		1: false, 1024: false} {
		value := strings.Repeat("v", length)
		l, err := New(node, "billing", Options{}).Campaign(t.Context(), value)
		if err != nil {
			t.Fatalf("a value of %d bytes: %v", length, err)
		}
		info, err := node.Peek(t.Context(), "billing")
		if err != nil || info.Queue[0].Value != value || shown.Lasting(info.Queue[0].Labels) != labelled {
			t.Errorf("a value of %d bytes: labels %v, %v", length, info.Queue[0].Labels, err)
		}
		if err := l.Resign(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
