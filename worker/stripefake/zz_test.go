package stripefake_test

import (
	"testing"

	"paidonce/worker/stripefake"
)

func TestZZStore(t *testing.T) {
	t.Parallel()
	var lives []stripefake.Life
	for s := uint64(5001); s <= 5500; s++ {
		lives = append(lives, forStore(drawLife(s, 40)))
	}
	for s, w := range brokenInStore(t, lives, 4) {
		t.Errorf("life %d\n%s", s, w)
	}
}

func TestZZPure(t *testing.T) {
	t.Parallel()
	f := 0
	for s := uint64(100000); s < 112000; s++ {
		l := drawLife(s, 40)
		if broken(l, 4) != "" {
			fail(t, l, func(c stripefake.Life) string { return broken(c, 4) })
			if f++; f > 2 {
				t.Fatal("x")
			}
		}
	}
}
