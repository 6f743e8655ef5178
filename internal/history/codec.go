package history

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"unicode/utf8"
)

// maxLine bounds a line with the most keys, each of the greatest length and with every byte
// escaped.
const maxLine = 2 << 20

// appendLine appends the line of an event, without the newline. It writes the same bytes as
// encoding/json, but is faster.
func appendLine(b []byte, e Event) []byte {
	b = append(b, `{"k":"`...)
	b = append(b, e.Kind.String()...)
	b = append(b, `","at":`...)
	b = strconv.AppendInt(b, e.At, 10)
	b = appendNumber(b, "v", uint64(e.Version))
	b = appendText(b, "node", e.Node)
	b = appendNumber(b, "op", e.Op)
	b = appendText(b, "key", e.Key)
	if len(e.Keys) > 0 {
		b = appendTexts(b, "keys", e.Keys)
	}
	b = appendNumber(b, "permits", uint64(e.Permits))
	b = appendNumber(b, "of", uint64(e.Of))
	b = appendText(b, "modes", e.Modes)
	if e.Try {
		b = append(b, `,"try":true`...)
	}
	if e.Outcome != 0 {
		b = appendText(b, "out", e.Outcome.String())
	}
	b = appendText(b, "err", e.Err)
	b = appendQuoted(b, "token", uint64(e.Token))
	b = appendQuoted(b, "last", uint64(e.Last))
	if e.Until != 0 {
		b = append(b, `,"until":`...)
		b = strconv.AppendInt(b, e.Until, 10)
	}
	if e.Group != 0 {
		b = append(b, `,"group":"`...)
		b = strconv.AppendUint(b, uint64(e.Group), 16)
		b = append(b, '"')
	}
	b = appendNumber(b, "index", e.Index)
	b = appendNumber(b, "seq", uint64(e.Seq))
	b = appendQuoted(b, "rev", uint64(e.Rev))
	b = appendQuoted(b, "place", uint64(e.Place))
	b = appendQuoted(b, "resumes", uint64(e.Resumes))
	b = appendQuoted(b, "upgrades", uint64(e.Upgrades))
	b = appendQuoted(b, "session", uint64(e.Session))
	b = appendNumber(b, "number", uint64(e.Number))
	if e.How != 0 {
		b = appendText(b, "how", e.How.String())
	}
	b = appendNumber(b, "count", e.Count)
	return append(b, '}')
}

func appendName(b []byte, name string) []byte {
	b = append(b, ',', '"')
	b = append(b, name...)
	return append(b, '"', ':')
}

func appendNumber(b []byte, name string, n uint64) []byte {
	if n == 0 {
		return b
	}
	return strconv.AppendUint(appendName(b, name), n, 10)
}

func appendQuoted(b []byte, name string, n uint64) []byte {
	if n == 0 {
		return b
	}
	b = append(appendName(b, name), '"')
	return append(strconv.AppendUint(b, n, 10), '"')
}

func appendText(b []byte, name, text string) []byte {
	if text == "" {
		return b
	}
	return appendString(appendName(b, name), text)
}

func appendTexts(b []byte, name string, texts []string) []byte {
	b = append(appendName(b, name), '[')
	for i, text := range texts {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(b, text)
	}
	return append(b, ']')
}

func appendString(b []byte, text string) []byte {
	b = append(b, '"')
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r < ' ':
			b = fmt.Appendf(b, `\u%04x`, r)
		default:
			b = utf8.AppendRune(b, r) // invalid bytes become U+FFFD
		}
	}
	return append(b, '"')
}

// Read reads one or several concatenated files, and appends the events to the given events. Each
// event gets the node and the stream of the last header before it. Read ignores an incomplete last
// line of a file, which a crash may leave.
func Read(events []Event, r io.Reader) ([]Event, error) {
	stream, node := 0, ""
	if n := len(events); n > 0 {
		stream = events[n-1].Stream
	}
	before, lines := stream, 0
	// error of an invalid line; ignored if a header follows, because a crash may leave an incomplete
	// line
	var cut error
	in := bufio.NewReaderSize(r, maxLine)
	for {
		line, err := in.ReadSlice('\n')
		if err == io.EOF { // a last line without a newline is ignored
			return events, cut
		}
		lines++
		if err != nil {
			return events, fmt.Errorf("history: line %d: %w", lines, err)
		}
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		var e Event
		if err := json.Unmarshal(line, &e); err != nil && cut == nil {
			cut = fmt.Errorf("history: line %d is not an event: %w", lines, err)
			continue
		}
		if cut != nil && e.Kind != Header {
			return events, cut
		}
		cut = nil
		if e.Kind == Header {
			stream, node = stream+1, e.Node
			if e.Version > Version {
				return events, fmt.Errorf("history: line %d: version %d is newer than this build, which reads up to %d",
					lines, e.Version, Version)
			}
		}
		if stream == before {
			return events, fmt.Errorf("history: line %d: the file does not begin with a header", lines)
		}
		e.Stream, e.Node = stream, node
		events = append(events, e)
	}
}

// Write writes events, one stream after the other, each with one header.
func Write(w io.Writer, events []Event) error {
	byStream := slices.Clone(events)
	slices.SortStableFunc(byStream, func(a, b Event) int { return cmp.Compare(a.Stream, b.Stream) })
	out := bufio.NewWriter(w)
	var lines []byte
	for i, e := range byStream {
		lines = lines[:0]
		if e.Kind == Header && i > 0 && byStream[i-1].Stream == e.Stream {
			continue
		}
		if e.Kind != Header && (i == 0 || byStream[i-1].Stream != e.Stream) {
			lines = append(appendLine(lines, Event{Kind: Header, At: e.At, Version: Version, Node: e.Node}), '\n')
		}
		if e.Kind != Header {
			e.Node = ""
		}
		lines = append(appendLine(lines, e), '\n')
		if _, err := out.Write(lines); err != nil {
			return err
		}
	}
	return out.Flush()
}
