package credentials

import (
	"fmt"
	"math"
	"strings"
	"unicode"
)

const (
	minSecret = 16  // bytes
	minBits   = 128 // bits

	estimated = 512 // the estimate considers at most this many bytes
	wordBits  = 11  // bits for a word, as if chosen from 2,048
	leastRun  = 6   // shortest repetition or sequence that counts as one character

	howToMake = "make one with `mortise secret` (or `openssl rand -hex 32`), and give the same to every instance"
)

// judge returns what is wrong with a secret, without quoting it. A generated secret is accepted if
// its checksum is correct.
func judge(secret string) error {
	if ours, err := generated(secret); ours {
		return err
	}
	if n := len(secret); n < minSecret {
		return fmt.Errorf("%d bytes are too few, at least %d are needed: %s", n, minSecret, howToMake)
	}
	if bits := estimate(secret); bits < minBits {
		return fmt.Errorf("can be guessed: it is estimated at %d bits, and at least %d are needed: %s", bits, minBits,
			howToMake)
	}
	return nil
}

// estimate returns an upper bound of a secret's strength in bits. There are two methods, and the
// lower result counts.
//
// The first method counts characters. Each character counts as the binary logarithm of the
// alphabet's size. The size is the sum of the kinds that occur in the secret: 10 for digits, 26 for
// small letters, 26 for capital letters and 32 for others. Digits and letters of one case count as
// 16 in all if they are all hexadecimal. The size is limited to twice the number of different
// characters in the secret. Six or more bytes that repeat earlier bytes, or form a sequence such as
// 12345678, count as one character.
//
// The second method counts words: 11 bits for a word, 3 for a digit, 1 for a separator. It applies
// if the secret contains white space, or if three quarters of the secret are pronounceable words of
// five or more letters of one case.
//
// The estimate finds common mistakes and proves nothing. It refuses about one in 100,000 outputs of
// openssl rand -base64 24.
func estimate(secret string) int {
	text := secret[:min(len(secret), estimated)]
	return int(min(byCharacters(text), byWords(text)))
}

func byCharacters(text string) float64 {
	var lower, upper, digit, other, notHex bool
	different := map[byte]bool{}
	for i := range len(text) {
		b := text[i]
		different[b] = true
		switch {
		case b >= '0' && b <= '9':
			digit = true
		case b >= 'a' && b <= 'z':
			lower = true
			notHex = notHex || b > 'f'
		case b >= 'A' && b <= 'Z':
			upper = true
			notHex = notHex || b > 'F'
		default:
			other, notHex = true, true
		}
	}
	alphabet := 0
	for _, class := range [...]struct {
		has  bool
		size int
	}{{digit, 10}, {lower, 26}, {upper, 26}, {other, 32}} {
		if class.has {
			alphabet += class.size
		}
	}
	if !notHex && lower != upper {
		alphabet = 16
	}
	alphabet = min(alphabet, 2*len(different))
	return float64(folded(text)) * math.Log2(float64(max(alphabet, 2)))
}

func folded(text string) int {
	count := 0
	for i := 0; i < len(text); count++ {
		run := max(sequence(text[i:]), repeated(text, i))
		if run < leastRun {
			run = 1
		}
		i += run
	}
	return count
}

// sequence returns the length of the sequence at the beginning of text. A sequence always increases
// by one, always decreases by one, or is constant.
func sequence(text string) int {
	if len(text) < 2 {
		return len(text)
	}
	step := int(text[1]) - int(text[0])
	if step < -1 || step > 1 {
		return 1
	}
	n := 2
	for n < len(text) && int(text[n])-int(text[n-1]) == step {
		n++
	}
	return n
}

// repeated returns the length of the longest piece of text at index i that also occurs at a lower
// index.
func repeated(text string, i int) int {
	longest := 0
	for from := range i {
		n := 0
		for i+n < len(text) && text[from+n] == text[i+n] {
			n++
		}
		longest = max(longest, n)
	}
	return longest
}

// byWords returns infinity if the text does not consist of words.
func byWords(text string) float64 {
	total, inWords, bits := 0, 0, 0.0
	spaced := strings.ContainsFunc(text, unicode.IsSpace)
	for len(text) > 0 {
		word := firstWord(text)
		n := len(word)
		switch {
		case n > 0:
			if n >= 5 && spoken(word) {
				inWords += n
			}
			bits += min(wordBits, float64(n)*math.Log2(26))
		case text[0] >= '0' && text[0] <= '9':
			n = 1
			bits += math.Log2(10)
		default:
			n = 1
			bits++
		}
		total += n
		text = text[n:]
	}
	if 4*inWords < 3*total && !spaced {
		return math.Inf(1)
	}
	return bits
}

// firstWord returns the word at the beginning of text. A word is two or more capital letters, or
// small letters after at most one capital.
func firstWord(text string) string {
	small := func(r rune) bool { return unicode.IsLetter(r) && !unicode.IsUpper(r) }
	large := func(r rune) bool { return unicode.IsUpper(r) }
	capitals := len(text) - len(strings.TrimLeftFunc(text, large))
	if capitals > 1 {
		return text[:capitals]
	}
	return text[:len(text)-len(strings.TrimLeftFunc(text[capitals:], small))]
}

func spoken(word string) bool {
	run := 0
	for _, r := range strings.ToLower(word) {
		if run++; r > unicode.MaxASCII || strings.ContainsRune("aeiouy", r) {
			run = 0
		}
		if run == 4 {
			return false
		}
	}
	return true
}
