package mortisegocron

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"

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
	scheduler, err := gocron.NewScheduler(gocron.WithLocation(time.UTC))
	if err != nil {
		return err
	}
	locker, runs := NewLocker(node, tick.Every(period), Options{}), 0
	_, err = scheduler.NewJob(gocron.DurationJob(period), gocron.NewTask(func() {
		if _, err := fmt.Fprintln(ticks, name(locker.Tick("job"))); err != nil {
			fmt.Println(err)
		}
		if runs++; runs == 5 {
			fmt.Println("five runs")
		}
	}), gocron.WithName("job"), gocron.WithStartAt(gocron.WithStartDateTime(time.Now().Truncate(period).Add(period))),
		gocron.WithDistributedJobLocker(locker))
	if err != nil {
		return err
	}
	scheduler.Start()
	return nil
}

// Three processes run a job in real time. The one that runs it most is killed, and another one
// continues. No tick is run twice.
func TestAProcessIsKilled(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ticks")
	f := trio.Start(t, "TICKS="+file)
	first := f.Await(1, "five runs")[0]
	f.Kill(first)
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
	t.Logf("%d ticks in %v", len(ticks), ticks)
}
