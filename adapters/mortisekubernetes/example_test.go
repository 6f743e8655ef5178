package mortisekubernetes_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"k8s.io/client-go/tools/leaderelection"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/adapters/mortisekubernetes"
)

// A service with three instances runs this in each of them.
func Example() {
	ctx, cancel := context.WithCancel(context.Background())
	node, err := mortise.Start(ctx, mortise.Config{}) // a group of one; a service has three
	if err != nil {
		panic(err)
	}
	defer func() { _ = node.Leave(context.Background()) }()

	host, err := os.Hostname() // in Kubernetes the name of the pod
	if err != nil {
		panic(err)
	}
	lock := mortisekubernetes.New(node, "leader/orders", host, mortisekubernetes.Options{})
	leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
		Lock:            lock,
		LeaseDuration:   15 * time.Second,
		RenewDeadline:   10 * time.Second,
		RetryPeriod:     2 * time.Second,
		ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) {
				ctx = lock.Held().Context(ctx) // ends when the lock is lost
				fmt.Println("leads, with a fencing token:", lock.Held().Token() > 0, ctx.Err())
				cancel()
			},
			OnStoppedLeading: func() { fmt.Println("stopped") },
		},
	})
	// Output:
	// leads, with a fencing token: true <nil>
	// stopped
}

// A manager of controller-runtime takes the lock as an option.
func ExampleNew_manager() {
	ctx := ctrl.SetupSignalHandler()
	node, err := mortise.Start(ctx, mortise.Config{})
	if err != nil {
		panic(err)
	}
	defer func() { _ = node.Leave(context.Background()) }()
	lock := mortisekubernetes.New(node, "leader/orders", os.Getenv("POD_NAME"), mortisekubernetes.Options{})
	manager, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{
		LeaderElection:                      true,
		LeaderElectionResourceLockInterface: lock,
		LeaderElectionReleaseOnCancel:       true,
	})
	if err != nil {
		panic(err)
	}
	if err := manager.Start(ctx); err != nil {
		log.Print(err) // "leader election lost", for example: end the process
	}
}
