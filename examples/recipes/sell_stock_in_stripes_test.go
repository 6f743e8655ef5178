package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/stripe"
)

// stock represents a table with one row per stripe. A row contains the number of seats that are
// left, and the highest token with which the row was written.
type stock struct {
	mu    sync.Mutex
	left  [4]int
	token [4]mortise.Token
}

// sell takes a seat from a row:
//
//	UPDATE stock SET seats = seats - 1, token = $1 WHERE stripe = $2 AND seats > 0 AND token <= $1
func (s *stock) sell(row int, token mortise.Token) (sold bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case token < s.token[row]:
		return false, errors.New("the lock of this row was lost meanwhile")
	case s.left[row] == 0:
		return false, nil
	}
	s.left[row]--
	s.token[row] = token
	return true, nil
}

func (s *stock) total() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.left[0] + s.left[1] + s.left[2] + s.left[3]
}

// buy takes a seat from a free row, and tries the other rows if that row is sold out.
func buy(ctx context.Context, seats *stripe.Set, s *stock) (sold bool, err error) {
	row, lock, err := seats.Any(ctx)
	for looked := 1; err == nil; looked++ {
		sold, err = s.sell(row, lock.Token())
		err = errors.Join(err, lock.Unlock(ctx))
		if sold || err != nil || looked == seats.Len() {
			return sold, err
		}
		row = (row + 1) % seats.Len()
		lock, err = seats.At(ctx, row)
	}
	return false, err
}

// A flash sale: 120 people on three instances want 100 seats at the same moment. The stock is in
// four rows, each under its own lock, so that four buyers are served at a time.
func Example_sellStockInStripes() {
	ctx := context.Background()
	nodes, stop := startFleet(ctx, "shop-0", "shop-1", "shop-2")
	defer stop()

	seats := stock{left: [4]int{25, 25, 25, 25}}
	fmt.Println("before:", seats.total(), "seats")
	var sold, soldOut atomic.Int32
	var buyers sync.WaitGroup
	for _, node := range nodes {
		set, err := stripe.New(node, "sale/42/seats", 4) // the same name and number on every instance
		check(err)
		for range 40 {
			buyers.Go(func() {
				got, err := buy(ctx, set, &seats)
				check(err)
				if got {
					sold.Add(1)
				} else {
					soldOut.Add(1)
				}
			})
		}
	}
	buyers.Wait()
	fmt.Println("after: ", seats.total(), "seats,", sold.Load(), "sold,", soldOut.Load(), "buyers too many")
	fmt.Println("oversold:", sold.Load() > 100)
	// Output:
	// before: 100 seats
	// after:  0 seats, 100 sold, 20 buyers too many
	// oversold: false
}
