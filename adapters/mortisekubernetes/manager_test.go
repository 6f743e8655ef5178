package mortisekubernetes

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/mortise-lock/mortise"
)

// newManager returns a manager whose API server cannot be reached.
func newManager(t *testing.T, lock *Lock) manager.Manager {
	t.Helper()
	lease, renew, retry := 3*time.Second, 2*time.Second, 100*time.Millisecond
	m, err := ctrl.NewManager(&rest.Config{Host: "https://127.0.0.1:1"}, manager.Options{
		LeaderElection: true, LeaderElectionResourceLockInterface: lock, LeaderElectionReleaseOnCancel: true,
		LeaseDuration: &lease, RenewDeadline: &renew, RetryPeriod: &retry,
		Metrics: server.Options{BindAddress: "0"}, Logger: logr.Discard(),
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) {
			return meta.NewDefaultRESTMapper(nil), nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Two managers of controller-runtime elect a leader without an API server. Only the leader runs its
// runnables, and the other one follows when the leader has ended.
func TestManagers(t *testing.T) {
	node, err := mortise.Start(t.Context(), mortise.Config{Insecure: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = node.Leave(context.Background()) })
	leads, ended := make(chan int), make(chan error, 2)
	var locks []*Lock
	var cancels []context.CancelFunc
	for i, identity := range []string{"manager-0", "manager-1"} {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		lock := New(node, key, identity, Options{})
		m := newManager(t, lock)
		if err := m.Add(manager.RunnableFunc(func(ctx context.Context) error {
			leads <- i
			<-ctx.Done()
			return nil
		})); err != nil {
			t.Fatal(err)
		}
		go func() { ended <- m.Start(ctx) }()
		locks, cancels = append(locks, lock), append(cancels, cancel)
	}
	first := await(t, leads)
	select {
	case <-leads:
		t.Fatal("both managers lead")
	case <-time.After(time.Second):
	}
	token := locks[first].Held().Token()
	cancels[first]()
	if err := await(t, ended); err != nil {
		t.Error(err)
	}
	if next := await(t, leads); next == first || locks[next].Held().Token() <= token {
		t.Errorf("manager %d leads after %d", next, first)
	}
	cancels[1-first]()
	if err := await(t, ended); err != nil {
		t.Error(err)
	}
}

// await limits a wait that takes less than two seconds on an idle machine.
func await[T any](t *testing.T, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(time.Minute):
		t.Fatal("nothing within a minute")
	}
	return v
}
