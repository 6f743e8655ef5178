package grpclock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/mortisetest"
)

// service is an interceptor on each node of a cluster, and a handler that counts.
type service struct {
	cluster   *mortisetest.Cluster
	locks     []Interceptor
	now, most atomic.Int64
	mu        sync.Mutex
	failed    []error
	handle    func(ctx context.Context) error // nil means that it takes a second
}

func newService(t *testing.T, nodes int) *service {
	s := &service{cluster: mortisetest.New(t, nodes)}
	for i := range nodes {
		s.locks = append(s.locks, Interceptor{
			Node: s.cluster.Node(i),
			Request: func(_ context.Context, method string, req any) (mortise.Request, bool) {
				key, _ := req.(string) // nil for streams
				if method == stream {
					key = "stream"
				}
				return mortise.Request{Key: key, MaxWaiting: 2}, method != "/test.Orders/Get"
			},
			Failed: func(_ context.Context, _ string, err error) {
				s.mu.Lock()
				defer s.mu.Unlock()
				s.failed = append(s.failed, err)
			},
		})
	}
	return s
}

const (
	put    = "/test.Orders/Put"
	get    = "/test.Orders/Get"
	stream = "/test.Orders/Stream"
)

func (s *service) work(ctx context.Context) (any, error) {
	s.most.Store(max(s.most.Load(), s.now.Add(1)))
	defer s.now.Add(-1)
	if s.handle != nil {
		return nil, s.handle(ctx)
	}
	time.Sleep(time.Second)
	token, locked := mortise.TokenFrom(ctx)
	return fmt.Sprint(token > 0, locked), nil
}

type fakeStream struct {
	grpc.ServerStream
	ctx context.Context
}

func (f *fakeStream) Context() context.Context { return f.ctx }

func (s *service) call(ctx context.Context, node int, method, key string) (reply any, err error) {
	if method == stream {
		err = s.locks[node].Stream()(nil, &fakeStream{ctx: ctx}, &grpc.StreamServerInfo{FullMethod: method},
			func(_ any, st grpc.ServerStream) error {
				reply, err = s.work(st.Context())
				return err
			})
		return reply, err
	}
	return s.locks[node].Unary()(ctx, key, &grpc.UnaryServerInfo{FullMethod: method},
		func(ctx context.Context, _ any) (any, error) { return s.work(ctx) })
}

func inBubble(t *testing.T, nodes int, test func(t *testing.T, s *service)) {
	synctest.Test(t, func(t *testing.T) { test(t, newService(t, nodes)) })
}

func TestOneCallAtATime(t *testing.T) {
	for _, method := range []string{put, stream} {
		inBubble(t, 3, func(t *testing.T, s *service) {
			var all sync.WaitGroup
			for i := range 3 {
				all.Go(func() {
					if reply, err := s.call(t.Context(), i, method, "a"); err != nil || reply != "true true" {
						t.Errorf("%v, %v", reply, err)
					}
				})
			}
			all.Wait()
			if s.most.Load() != 1 {
				t.Errorf("%s: %d at a time", method, s.most.Load())
			}
			for i := range 3 {
				all.Go(func() {
					if reply, err := s.call(t.Context(), i, get, "a"); err != nil || reply != "false false" {
						t.Errorf("%v, %v", reply, err)
					}
				})
				all.Go(func() {
					if reply, err := s.call(t.Context(), i, put, fmt.Sprint(i)); err != nil || reply != "true true" {
						t.Errorf("%v, %v", reply, err)
					}
				})
			}
			all.Wait()
			if s.most.Load() != 6 || len(s.failed) != 0 {
				t.Errorf("%d at a time, failed %v", s.most.Load(), s.failed)
			}
		})
	}
}

func TestCodes(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, s *service) {
		expect := func(what string, want codes.Code, err error) {
			t.Helper()
			if status.Code(err) != want {
				t.Errorf("%s: %v, want %v", what, err, want)
			}
		}
		only := func(_ any, err error) error { return err }
		over := make(chan bool)
		s.handle = func(context.Context) error { <-over; return status.Error(codes.DataLoss, "of the handler") }
		var all sync.WaitGroup
		for range 3 { // one is handled, and two wait
			all.Go(func() { expect("handled", codes.DataLoss, only(s.call(t.Context(), 0, put, "a"))) })
			synctest.Wait()
		}
		expect("queue full", codes.ResourceExhausted, only(s.call(t.Context(), 0, put, "a")))
		close(over)
		all.Wait()
		lock, err := s.cluster.Node(1).Lock(t.Context(), "stream")
		if err != nil {
			t.Fatal(err)
		}
		s.locks[0].MaxWait = 3 * time.Second
		expect("MaxWait", codes.ResourceExhausted, only(s.call(t.Context(), 0, stream, "")))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		expect("deadline", codes.DeadlineExceeded, only(s.call(ctx, 0, stream, "")))
		expect("no key", codes.InvalidArgument, only(s.call(t.Context(), 0, put, "")))
		if err := lock.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
		s.cluster.Isolate(0)
		time.Sleep(10 * time.Second)
		begin := time.Now()
		expect("isolated", codes.Unavailable, only(s.call(t.Context(), 0, put, "a")))
		if took := time.Since(begin); took > 1100*time.Millisecond {
			t.Errorf("failed after %v, want a second", took)
		}
		s.cluster.Heal()
		s.cluster.Ready(0)
		s.locks[0].Request = func(context.Context, string, any) (mortise.Request, bool) {
			return mortise.Request{Key: "a", Mode: mortise.Permits(3, 0)}, true
		}
		expect("a mistake", codes.Internal, only(s.call(t.Context(), 0, put, "a")))
		if len(s.failed) != 6 {
			t.Errorf("failed %v", s.failed)
		}
	})
}

// If the lock is lost, the handler ends, and the client may try again. A result of the handler that
// does not come from its context is passed on.
func TestALostLockEndsTheHandler(t *testing.T) {
	for _, method := range []string{put, stream} {
		for want, result := range map[codes.Code]func(ctx context.Context) error{
			codes.Unavailable: func(ctx context.Context) error { return ctx.Err() },
			codes.OK:          func(context.Context) error { return nil },
			codes.NotFound:    func(context.Context) error { return status.Error(codes.NotFound, "") },
		} {
			inBubble(t, 3, func(t *testing.T, s *service) {
				began, done := make(chan bool, 1), make(chan error, 1)
				s.handle = func(ctx context.Context) error {
					began <- true
					<-ctx.Done()
					if cause := context.Cause(ctx); !errors.Is(cause, mortise.ErrLost) {
						t.Errorf("the cause is %v", cause)
					}
					return result(ctx)
				}
				go func() {
					_, err := s.call(t.Context(), 0, method, "a")
					done <- err
				}()
				<-began
				s.cluster.Lose(0)
				if err := <-done; status.Code(err) != want || len(s.failed) != 1 || !errors.Is(s.failed[0], mortise.ErrLost) {
					t.Errorf("%s: %v, want %v, failed %v", method, err, want, s.failed)
				}
				s.cluster.Ready(0)
			})
		}
	}
}
