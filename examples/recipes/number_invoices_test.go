package recipes_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/mortise-lock/mortise/counter"
)

// Three instances number invoices and identify their lines. Two invoices never get the same number,
// also if the answer to an addition is lost. An ID costs less than a number: an instance reserves
// many at once.
func Example_numberInvoices() {
	ctx := context.Background()
	nodes, stop := startFleet(ctx, "billing-0", "billing-1", "billing-2")
	defer stop()

	const each = 5
	var mu sync.Mutex
	numbers, lines := map[int64]bool{}, map[uint64]bool{}
	var work sync.WaitGroup
	for _, node := range nodes {
		work.Go(func() {
			invoices := counter.New(node, "invoices/2026")
			first, err := node.IDs(ctx, 2*each)
			check(err)
			for i := range uint64(each) {
				number, err := invoices.Add(ctx, 1)
				check(err)
				mu.Lock()
				numbers[number], lines[first+2*i], lines[first+2*i+1] = true, true, true
				mu.Unlock()
			}
		})
	}
	work.Wait()
	last, err := counter.New(nodes[0], "invoices/2026").Value(ctx)
	check(err)
	fmt.Println("the last number is", last)
	fmt.Println(len(numbers), "numbers,", len(lines), "lines")
	// Output:
	// the last number is 15
	// 15 numbers, 30 lines
}
