package scenarios_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/fence"
)

// startService stands for another team's service. It refuses tokens that are lower than what it has seen of the order, and does each step
// once, however often it is asked.
func startService(name string) *httptest.Server {
	var done fence.Memo // a real one keeps that in its database: fence.Ledger
	steps := func(w http.ResponseWriter, r *http.Request) {
		token, _ := fence.FromContext(r.Context())
		order, step := strings.TrimPrefix(r.URL.Path, "/"), r.URL.Query().Get("step")
		_, err := done.Do(r.Context(), fence.Step{Resource: order, Token: token, ID: step}, func(context.Context) ([]byte, error) {
			fmt.Println(name+":", step, order)
			return nil, nil
		})
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	}
	guard := fence.Guard{Store: &fence.Mark{}, Resource: func(r *http.Request) string { return strings.TrimPrefix(r.URL.Path, "/") }}
	return httptest.NewServer(guard.Wrap(http.HandlerFunc(steps)))
}

// ask asks a service for a step. The transport hands the token of ctx over, so that the service works under our lock.
func ask(ctx context.Context, service *httptest.Server, order, step string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, service.URL+"/"+order+"?step="+step, nil)
	if err != nil {
		return err
	}
	client := http.Client{Transport: &fence.Transport{Require: true}}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return errors.Join(fence.ResponseError(response), errors.New(response.Status))
	}
	return nil
}

// A saga: an order needs a reservation in one service and a charge in another, and the instance that works on it dies in between.
//
// The lock dies with its instance. For the time from there until another one takes the order up, nobody holds it: a hold that outlives its
// process and is taken up by the next does not exist in mortise yet. So nothing of the saga may rest on the lock being held throughout. Each
// step has an ID and is safe to repeat, whoever comes next begins anew, and from his first call at a service its token shuts
// out there who came before.
func Example_saga() {
	ctx := context.Background()
	node, err := mortise.Start(ctx, mortise.Config{})
	check(err)
	defer node.Leave(ctx)
	stock, payment := startService("stock"), startService("payment")
	defer stock.Close()
	defer payment.Close()

	died := errors.New("out of memory")
	var late context.Context // in which the first instance still has something to say
	err = node.Do(ctx, "orders/42", func(ctx context.Context, token mortise.Token) error {
		late = fence.NewContext(context.WithoutCancel(ctx), token)
		if err := ask(ctx, stock, "orders/42", "reserve"); err != nil {
			return err
		}
		return died // before the charge; in life nobody unlocks then, and the lock is free when the session has expired
	})
	fmt.Println("first instance:", err)

	err = node.Do(ctx, "orders/42", func(ctx context.Context, token mortise.Token) error {
		if err := ask(ctx, stock, "orders/42", "reserve"); err != nil { // which is done already, and nobody but the stock knows
			return err
		}
		return ask(ctx, payment, "orders/42", "charge")
	})
	fmt.Println("second instance:", err)

	// The first one wanted to undo its reservation, and that message arrives now.
	err = ask(late, stock, "orders/42", "release")
	fmt.Println("the late release is refused:", errors.Is(err, fence.ErrStale))
	// Output:
	// stock: reserve orders/42
	// first instance: out of memory
	// payment: charge orders/42
	// second instance: <nil>
	// the late release is refused: true
}
