package tick_test

import (
	"context"
	"maps"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/shown"
	"github.com/mortise-lock/mortise/tick"
)

func TestLocksSayWhatTheyAreFor(t *testing.T) {
	node, err := mortise.Start(t.Context(), mortise.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer node.Close()
	found := map[string]int{}
	ctx, done := context.WithCancel(t.Context())
	defer done()
	_ = tick.Run(ctx, node, tick.Job{Name: "report", Schedule: tick.Every(100 * time.Millisecond),
		Run: func(ctx context.Context, _ tick.Tick) error {
			defer done()
			for k, err := range node.List(ctx, "report") {
				if err != nil {
					return err
				}
				if len(k.Queue) > 0 {
					found[k.Queue[0].Labels[shown.PurposeLabel]]++
				}
			}
			return nil
		}})
	if want := map[string]int{shown.Job: 1, shown.Tick: 2}; !maps.Equal(found, want) {
		t.Errorf("the labels are %v, want %v", found, want)
	}
}
