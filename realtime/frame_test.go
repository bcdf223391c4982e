package realtime

import "testing"

// FuzzCutFrame looks for frames that reach beyond what there is, or are longer than a client may send.
func FuzzCutFrame(f *testing.F) {
	f.Add([]byte{0x81, 0x82, 1, 2, 3, 4, 'a', 'b'})
	f.Add([]byte{0x81, 0xfe, 0, 126, 1, 2, 3, 4})
	f.Add([]byte{0x81, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 2, 3, 4})
	f.Add([]byte{0x89, 0xfe, 0, 0})
	f.Fuzz(func(t *testing.T, p []byte) {
		_, payload, size, err := cutFrame(p)
		if size < 0 || size > len(p) || len(payload) > MaxFrame || len(payload) > size || err != nil && size != 0 {
			t.Errorf("%d of %d bytes, payload of %d, %v", size, len(p), len(payload), err)
		}
		if size == 0 && err == nil && len(p) >= MaxFrame+longestHead {
			t.Errorf("%d bytes are no frame yet", len(p))
		}
	})
}
