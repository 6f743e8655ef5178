package mortiseotel_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"strconv"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/mortise-lock/mortise"
)

func attr(s sdktrace.ReadOnlySpan, key string) string {
	at := slices.IndexFunc(s.Attributes(), func(kv attribute.KeyValue) bool { return string(kv.Key) == key })
	if at < 0 {
		return ""
	}
	return s.Attributes()[at].Value.Emit()
}

// span waits until a span with this name and this attribute has ended, and returns it.
func (r *rig) span(t *testing.T, name, key, value string) sdktrace.ReadOnlySpan {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		for _, s := range r.spans.Ended() {
			if s.Name() == name && attr(s, key) == value {
				return s
			}
		}
	}
	t.Fatalf("no span %q with %s = %q among %d", name, key, value, len(r.spans.Ended()))
	return nil
}

// The span of the hold may end before the span of the call that waited for it.
func TestAWaitLinksToTheHold(t *testing.T) {
	r := newRig(t)
	tracer := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(tracetest.NewSpanRecorder())).Tracer("test")
	ctx, parent := tracer.Start(t.Context(), "the caller")
	first := r.acquire(t, ctx, mortise.Request{Key: "k"})
	second := make(chan *mortise.Lock)
	go func() {
		l, err := r.node.Lock(context.Background(), "k")
		if err != nil {
			t.Error(err)
		}
		second <- l
	}()
	for r.node.Status().Waiters == 0 {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(20 * time.Millisecond)
	unlock(t, first)
	l := <-second
	unlock(t, l)
	text := func(t mortise.Token) string { return strconv.FormatUint(uint64(t), 10) }
	hold, wait := r.span(t, "mortise.hold", "mortise.token", text(first.Token())),
		r.span(t, "mortise.wait", "mortise.token", text(l.Token()))
	if hold.Parent().SpanID() != parent.SpanContext().SpanID() || attr(hold, "mortise.key") != "k" ||
		attr(hold, "mortise.outcome") != "confirmed" || hold.Status().Code == codes.Error {
		t.Errorf("the hold: %+v", hold)
	}
	if links := wait.Links(); len(links) != 1 || !links[0].SpanContext.Equal(hold.SpanContext()) {
		t.Errorf("the wait links to %v, want %v", links, hold.SpanContext())
	}
	if attr(wait, "mortise.behind.holder") != "solo" || attr(wait, "mortise.behind.token") != text(first.Token()) ||
		attr(wait, "mortise.outcome") != "granted" {
		t.Errorf("the wait: %v", wait.Attributes())
	}
	if took := wait.EndTime().Sub(wait.StartTime()); took < 20*time.Millisecond {
		t.Errorf("the wait took %v", took)
	}
	if own := r.span(t, "mortise.wait", "mortise.token", text(first.Token())); len(own.Links()) != 0 {
		t.Errorf("a call that did not wait links to %v", own.Links())
	}
}

// The span of a lost hold must end only once, although Unlock also reports the loss.
func TestALossEndsTheHold(t *testing.T) {
	r := newRig(t)
	l := r.acquire(t, t.Context(), mortise.Request{Key: "k", MaxHold: time.Millisecond})
	<-l.Done()
	if err := l.Unlock(t.Context()); err == nil {
		t.Fatal("unlocked")
	}
	token := strconv.FormatUint(uint64(l.Token()), 10)
	if s := r.span(t, "mortise.hold", "mortise.token", token); s.Status().Code != codes.Error ||
		attr(s, "mortise.outcome") != "overdue" && attr(s, "mortise.outcome") != "lost" {
		t.Errorf("%v, %v", s.Status(), s.Attributes())
	}
	held := r.acquire(t, t.Context(), mortise.Request{Key: "k"})
	if _, err := r.node.TryLock(t.Context(), "k"); err == nil {
		t.Fatal("granted twice")
	}
	refused := r.span(t, "mortise.wait", "mortise.outcome", "held")
	if refused.Status().Code != codes.Error ||
		attr(refused, "mortise.behind.token") != strconv.FormatUint(uint64(held.Token()), 10) ||
		len(refused.Links()) != 1 {
		t.Errorf("%v, %v, links %v", refused.Status(), refused.Attributes(), refused.Links())
	}
	unlock(t, held)
}

// The link is to the span in which the other instance requested the lock.
func TestAWaitLinksToAnotherInstance(t *testing.T) {
	var addresses []string
	for range 2 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		addresses = append(addresses, l.Addr().String())
		_ = l.Close()
	}
	var rigs []*rig
	for i, a := range addresses {
		rigs = append(rigs, startRig(t, func(c *mortise.Config) {
			c.Name, c.Bind, c.Join, c.Replicas, c.Dir, c.Grace = strconv.Itoa(i), a, addresses, 2, "", -1
		}))
	}
	for _, r := range rigs {
		r.ready(t)
	}
	tracer := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(tracetest.NewSpanRecorder())).Tracer("test")
	ctx, caller := tracer.Start(t.Context(), "the caller")
	held := rigs[0].acquire(t, ctx, mortise.Request{Key: "k", Value: "a value of the user's"})
	var refused *mortise.HeldError
	if _, err := rigs[1].node.TryLock(t.Context(), "k"); !errors.As(err, &refused) ||
		refused.Value != "a value of the user's" {
		t.Errorf("%v", err)
	}
	wait := rigs[1].span(t, "mortise.wait", "mortise.outcome", "held")
	links := wait.Links()
	if len(links) != 1 || links[0].SpanContext.TraceID() != caller.SpanContext().TraceID() ||
		links[0].SpanContext.SpanID() != caller.SpanContext().SpanID() || !links[0].SpanContext.IsRemote() {
		t.Errorf("the wait links to %v, want %v", links, caller.SpanContext())
	}
	if attr(wait, "mortise.behind.holder") != "0" {
		t.Errorf("%v", wait.Attributes())
	}
	unlock(t, held)
}
