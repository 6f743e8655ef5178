package transport

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/mortise-lock/mortise/internal/lab/limits"
	wire "github.com/mortise-lock/mortise/transport/wire/mortise/transport/v1"
)

// A refusal whose text was cut inside a character could not be encoded, and the peer would not
// learn the reason.
func TestRefusalsAreCutBetweenCharacters(t *testing.T) {
	limits.CutTexts(t, "the text of a refusal", maxLabel, "...", func(text string) string {
		b, err := proto.Marshal(&wire.Refusal{Reason: wire.Refusal_FAILED, Text: clip(text)})
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		var r wire.Refusal
		if err := proto.Unmarshal(b, &r); err != nil {
			t.Fatal(err)
		}
		return r.GetText()
	})
}
