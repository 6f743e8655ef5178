package recipes_test

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

// startService starts a server that represents the service of another team. It refuses tokens that
// are lower than one it has received for the order, and performs each step once, however often the
// step is requested.
func startService(name string) *httptest.Server {
	var done fence.Memo // in production: fence.Ledger, in the database of the service
	steps := func(w http.ResponseWriter, r *http.Request) {
		token, _ := mortise.TokenFrom(r.Context())
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

// ask requests a step of a service. The HTTP transport adds the token of ctx.
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
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return errors.Join(fence.ResponseError(response), errors.New(response.Status))
	}
	return nil
}

// message is sent from one service of the saga to the next. Its token entitles the receiver to
// resume the hold.
type message struct {
	Order string
	Token mortise.Token
}

// billing has the labels by which a restarted service finds its hold.
var billing = map[string]string{"service": "billing"}

// A saga: one service reserves an order and a second service charges it. The instance of the second
// service dies after the charge. The order stays locked from the first step to the last: with the
// token, each process resumes the hold of the previous process.
//
// Each step has an ID and can be repeated safely. Each Resume returns a higher token, so the
// services refuse the earlier holders.
func Example_orderOverTwoServices() {
	ctx := context.Background()
	nodes, stop := startFleet(ctx, "orders-0", "billing-0", "other-0")
	defer stop()
	stock, payment := startService("stock"), startService("payment")
	defer stock.Close()
	defer payment.Close()

	// The service Orders locks the order, makes the reservation, detaches the lock and sends the
	// token to the next service. The order stays locked for the LockDelay, so a lost message must
	// be detected within that time.
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
	fmt.Println("locked between two services:", errors.Is(err, mortise.ErrHeld))

	// The billing service resumes the hold, sets its labels, charges, and crashes before it has
	// reported the charge.
	var late context.Context // the context of a late request of the crashed process
	{
		var m message
		check(json.Unmarshal(sent, &m))
		lock, err := nodes[1].Resume(ctx, m.Order, m.Token, mortise.ResumeOptions{Labels: billing})
		check(err)
		check(ask(lock.Context(ctx), payment, m.Order, "charge"))
		late = mortise.ContextWithToken(ctx, lock.Token())
		check(nodes[1].Close())
	}

	// The billing service starts again, and receives the message a second time. The token in the
	// message is no longer valid, so the service finds the hold and its present token by the
	// labels.
	again := startAnother(ctx, "billing-0", nodes[0])
	defer func() { _ = again.Close() }()
	info, err := again.Peek(ctx, "orders/42")
	check(err)
	found := info.Queue[0]
	fmt.Println("found its hold:", maps.Equal(found.Labels, billing), "on", found.Holder)
	lock, err := again.Resume(ctx, "orders/42", found.Token, mortise.ResumeOptions{})
	check(err)
	// The charge is already done, but this service cannot know that.
	check(ask(lock.Context(ctx), payment, "orders/42", "charge"))
	check(ask(lock.Context(ctx), stock, "orders/42", "ship"))
	check(lock.Unlock(ctx))

	// A refund that the crashed process had sent arrives now.
	err = ask(late, payment, "orders/42", "refund")
	fmt.Println("the late refund is refused:", errors.Is(err, fence.ErrStale))
	// Output:
	// stock: reserve orders/42
	// locked between two services: true
	// payment: charge orders/42
	// found its hold: true on billing-0
	// stock: ship orders/42
	// the late refund is refused: true
}
