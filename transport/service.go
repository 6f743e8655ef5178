package transport

import (
	"io"
	"time"

	"google.golang.org/grpc"

	wire "github.com/mortise-lock/mortise/transport/wire/mortise/transport/v1"
)

type service struct {
	wire.UnimplementedPeerServer
	port   *table
	gossip *Gossip
}

func (s *service) Packets(stream grpc.ClientStreamingServer[wire.Parcel, wire.Ack]) error {
	p := s.port
	first, err := firstOf(p.base, stream.Context(), stream.Recv)
	if err != nil {
		return err
	}
	peer, r := p.caller(stream.Context())
	if r != nil {
		return stream.SendAndClose(&wire.Ack{Refusal: r})
	}
	if !peer.serves() {
		return stream.SendAndClose(&wire.Ack{Refusal: notAnInstance()})
	}
	if p.holds.packets.Take(peer.claimant(), 1) != nil {
		r := &wire.Refusal{Reason: wire.Refusal_FULL, Text: "too many streams of packets"}
		return stream.SendAndClose(&wire.Ack{Refusal: r})
	}
	defer p.holds.packets.Give(peer.claimant(), 1)
	from := peer.Addr
	for parcel := first; ; {
		if r := p.duplicates(peer, parcel.Raft); r != nil {
			return stream.SendAndClose(&wire.Ack{Refusal: r})
		}
		for _, data := range parcel.Packets {
			if len(data) > packetBytes { // the queue limits the number of packets, not their size
				p.counts.packetsDropped.Add(1)
				continue
			}
			select {
			case s.gossip.packets <- Packet{Data: data, From: from, At: time.Now()}:
			default:
				p.counts.packetsDropped.Add(1)
			}
		}
		if parcel, err = stream.Recv(); err != nil {
			return stream.SendAndClose(&wire.Ack{})
		}
	}
}

func (s *service) Conn(stream grpc.BidiStreamingServer[wire.Bytes, wire.Bytes]) error {
	p := s.port
	if _, err := firstOf(p.base, stream.Context(), stream.Recv); err != nil {
		return err
	}
	peer, r := p.caller(stream.Context())
	if r != nil {
		return stream.Send(&wire.Bytes{Refusal: r})
	}
	if !peer.serves() {
		return stream.Send(&wire.Bytes{Refusal: notAnInstance()})
	}
	if p.holds.conns.Take(peer.claimant(), 1) != nil {
		r := &wire.Refusal{Reason: wire.Refusal_FULL, Text: "too many byte streams"}
		return stream.Send(&wire.Bytes{Refusal: r})
	}
	defer p.holds.conns.Give(peer.claimant(), 1)
	c := newStreamConn(p.base, peer.Addr, stream.Send, stream.Recv)
	timer := time.NewTimer(streamsQueued)
	defer timer.Stop()
	select {
	case s.gossip.streams <- c:
	case <-timer.C:
		return stream.Send(&wire.Bytes{Refusal: &wire.Refusal{Reason: wire.Refusal_FULL,
			Text: "this node does not accept gossip streams"}})
	case <-stream.Context().Done():
		return nil
	case <-p.closing:
		return nil
	}
	done := make(chan struct{})
	if !s.gossip.start(c, func() { c.read(); <-done }) {
		c.Close()
		return nil
	}
	defer close(done)
	if err := stream.Send(&wire.Bytes{}); err != nil && err != io.EOF {
		c.fail(err)
	}
	c.write(stream.Context())
	return nil
}

func (s *service) Snapshot(stream snapshotStream) error {
	p := s.port
	first, err := firstOf(p.base, stream.Context(), stream.Recv)
	if err != nil {
		return err
	}
	from, refusal := p.caller(stream.Context())
	if refusal == nil && !from.serves() {
		refusal = notAnInstance()
	}
	if refusal == nil {
		refusal, err = p.receiveSnapshot(stream, from, first)
	}
	if err != nil {
		return err
	}
	if refusal != nil {
		p.noteRefusal("transport: refused a snapshot", from, remoteOf(stream.Context()), refusal)
	}
	return stream.SendAndClose(&wire.Ack{Refusal: refusal})
}
