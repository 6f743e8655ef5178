package scenarios_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/fence"
)

// startService stands for another team's service. It refuses tokens that are lower than what it has
// seen of the order, and does each step once, however often it is asked.
func startService(name string) *httptest.Server {
	var done fence.Memo // a real one keeps that in its database: fence.Ledger
	steps := func(w http.ResponseWriter, r *http.Request) {
		token, _ := fence.FromContext(r.Context())
		order, step := strings.TrimPrefix(r.URL.Path, "/"), r.URL.Query().Get("step")
		_, err := done.Do(r.Context(), fence.Step{Resource: order, Token: token, ID: step},
			func(context.Context) ([]byte, error) {
				fmt.Println(name+":", step, order)
				return nil, nil
			})
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	}
	guard := fence.Guard{Store: &fence.Mark{},
		Resource: func(r *http.Request) string { return strings.TrimPrefix(r.URL.Path, "/") }}
	return httptest.NewServer(guard.Wrap(http.HandlerFunc(steps)))
}

// ask asks a service for a step. The transport hands the token of ctx over, so that the service
// works under our lock.
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

// message is what one service of the saga sends to the next. The token is the right to go on.
type message struct {
	Order string
	Token mortise.Token
}

// billing is how the hold of a service is known to whoever comes back after a crash: by what it
// shows.
var billing = map[string]string{"service": "billing"}

// A saga: an order needs a reservation by one service and a charge by the next, whose instance dies
// between the two. The order stays locked from the first step to the last, whichever process is at
// it, since the hold goes from one to the next by its token.
//
// Each step has an ID and is safe to repeat, since who comes back cannot know how far he came. Each
// taker has a higher token, which shuts out at the services who came before.
func Example_saga() {
	ctx := context.Background()
	nodes, stop := startFleet(ctx, "orders-0", "billing-0", "other-0")
	defer stop()
	stock, payment := startService("stock"), startService("payment")
	defer stock.Close()
	defer payment.Close()

	// Orders takes the order and reserves. Then it lets the lock go without ending the hold, and
	// hands its token on. For the LockDelay the order stays locked though nobody is at it: so long
	// somebody has to find out that the message was lost.
	var sent []byte
	{
		lock, err := nodes[0].Acquire(ctx, mortise.Request{Key: "orders/42", LockDelay: 24 * time.Hour})
		check(err)
		check(ask(lock.Context(ctx), stock, "orders/42", "reserve"))
		sent, err = json.Marshal(message{"orders/42", lock.Token()})
		check(err)
		check(lock.Detach(ctx))
	}
	_, err := nodes[2].TryLock(ctx, "orders/42")
	fmt.Println("locked while nobody is at it:", errors.Is(err, mortise.ErrHeld))

	// Billing takes the hold up, says that it is at it, charges, and dies before it has said so to
	// anybody.
	var late context.Context // in which it still has something to say
	{
		var m message
		check(json.Unmarshal(sent, &m))
		lock, err := nodes[1].Acquire(ctx, mortise.Request{Key: m.Order, Resume: m.Token, Labels: billing})
		check(err)
		check(ask(lock.Context(ctx), payment, m.Order, "charge"))
		late = fence.NewContext(ctx, lock.Token())
		check(nodes[1].Close())
	}

	// It is started again. The message comes again too, but its token is used up: the present one
	// is found by what was shown with it.
	again := startAnother(ctx, "billing-0", nodes[0])
	defer again.Close()
	info, err := again.Peek(ctx, "orders/42")
	check(err)
	found := info.Queue[0]
	fmt.Println("found its hold:", maps.Equal(found.Labels, billing), "on", found.Holder)
	lock, err := again.Acquire(ctx, mortise.Request{Key: "orders/42", Resume: found.Token})
	check(err)
	// which is done already, and nobody but the payment knows
	check(ask(lock.Context(ctx), payment, "orders/42", "charge"))
	check(ask(lock.Context(ctx), stock, "orders/42", "ship"))
	check(lock.Unlock(ctx))

	// What the dead one had sent, a refund, arrives now.
	err = ask(late, payment, "orders/42", "refund")
	fmt.Println("the late refund is refused:", errors.Is(err, fence.ErrStale))
	// Output:
	// stock: reserve orders/42
	// locked while nobody is at it: true
	// payment: charge orders/42
	// found its hold: true on billing-0
	// stock: ship orders/42
	// the late refund is refused: true
}
