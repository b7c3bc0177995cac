package main

import (
	"bytes"
	"io"
	"net/http"

	"k8s.io/client-go/rest"
)

// enough of a body to see what it is written in: the first frame of a watch has its length and its type before the
// object.
const enough = 64

// tellWire has each answer to the client told: what it says that it is written in, and what its first bytes are.
func tellWire(config *rest.Config) {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return recorder{next} })
}

type recorder struct{ next http.RoundTripper }

func (r recorder) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := r.next.RoundTrip(request)
	if err == nil && response.StatusCode == http.StatusOK {
		verb := "list"
		if request.URL.Query().Get("watch") != "" {
			verb = "watch"
		}
		response.Body = &beginning{ReadCloser: response.Body, verb: verb, type_: response.Header.Get("Content-Type")}
	}
	return response, err
}

// beginning tells of a body once there is enough of it, or no more.
type beginning struct {
	io.ReadCloser
	verb, type_ string
	read        []byte
	told        bool
}

func (b *beginning) Read(into []byte) (int, error) {
	count, err := b.ReadCloser.Read(into)
	if !b.told {
		b.read = append(b.read, into[:count]...)
		if len(b.read) >= enough || (err != nil && len(b.read) > 0) {
			b.told = true
			tell(line{Event: "wire", Name: b.verb, Step: b.type_, Names: []string{written(b.read)}})
		}
	}
	return count, err
}

// written says in what bytes are written: of a watch in protobuf, a length comes before the envelope's frame.
func written(read []byte) string {
	switch {
	case bytes.HasPrefix(read, envelope):
		return "protobuf"
	case len(read) > 4 && read[4] == 0x0a && bytes.Contains(read, envelope):
		return "protobuf frames"
	case bytes.HasPrefix(read, []byte("{")):
		return "json"
	}
	return "unknown"
}
