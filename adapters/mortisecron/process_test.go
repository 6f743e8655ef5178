package mortisecron

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/lab/trio"
	"github.com/mortise-lock/mortise/tick"
)

const period = 250 * time.Millisecond

func TestMain(m *testing.M) { trio.Main(m, schedule) }

// schedule runs in a process of its own. Its job appends the tick to a file.
func schedule(_ context.Context, node *mortise.Node) error {
	ticks, err := os.OpenFile(os.Getenv("TICKS"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	c, jobs, runs := cron.New(), New(node, Options{}), 0
	job := Func(func(_ context.Context, at time.Time) {
		if _, err := fmt.Fprintln(ticks, name(at)); err != nil {
			fmt.Println(err)
		}
		if runs++; runs == 5 {
			fmt.Println("five runs")
		}
	})
	c.Schedule(tick.Every(period), cron.NewChain(jobs.Once("job", tick.Every(period))).Then(job))
	c.Start()
	return nil
}

// Three processes run a job in real time. The one that runs it most is killed, and another one
// continues. No tick is run twice.
func TestAProcessIsKilled(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ticks")
	f := trio.Start(t, "TICKS="+file)
	f.Kill(f.Await(1, "five runs")[0])
	f.Await(2, "five runs")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	ticks := strings.Fields(string(text))
	seen := map[string]bool{}
	for _, tick := range ticks {
		if seen[tick] {
			t.Errorf("the tick %s was run twice", tick)
		}
		seen[tick] = true
	}
	if len(ticks) < 10 {
		t.Errorf("%d ticks: %v", len(ticks), ticks)
	}
}
