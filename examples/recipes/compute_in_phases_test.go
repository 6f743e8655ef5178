package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/mortise-lock/mortise/barrier"
)

// board represents the results of a computation: in each phase, every worker reads the values of
// all workers of the phase before.
type board struct {
	mu     sync.Mutex
	phases [][]int
}

func (b *board) write(phase, worker, value int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.phases[phase][worker] = value // the same again if a phase is repeated
}

func (b *board) sum(phase int) (sum int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, value := range b.phases[phase] {
		sum += value
	}
	return sum
}

// Three workers compute in phases. After each phase they wait for each other, because the next
// phase reads all results of the one before. After the first phase one worker is replaced, as in a
// deployment. If a worker stops while it waits, the others get ErrBroken and repeat the phase.
func Example_computeInPhases() {
	ctx := context.Background()
	nodes, stop := startFleet(ctx, "sum-0", "sum-1", "sum-2")
	defer stop()

	results := &board{phases: [][]int{{1, 1, 1}, {0, 0, 0}, {0, 0, 0}, {0, 0, 0}}}
	work := func(worker, phase, end int) {
		phases, err := barrier.NewCyclic(nodes[worker], "sums/42", 3, fmt.Sprint("worker-", worker))
		check(err)
		for phase < end {
			results.write(phase, worker, results.sum(phase-1))
			switch err := phases.Await(ctx); {
			case err == nil:
				phase++
			case !errors.Is(err, barrier.ErrBroken):
				check(err)
			}
		}
	}

	var workers sync.WaitGroup
	for worker := range 2 {
		workers.Go(func() { work(worker, 1, 4) })
	}
	work(2, 1, 2)
	work(2, 2, 4) // the successor of the worker
	workers.Wait()
	for phase := range results.phases {
		fmt.Println("phase", phase, results.phases[phase])
	}
	// Output:
	// phase 0 [1 1 1]
	// phase 1 [3 3 3]
	// phase 2 [9 9 9]
	// phase 3 [27 27 27]
}
