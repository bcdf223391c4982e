// Package browsertest drives a Chromium for tests of pages, over its debugging pipe: what a test needs of it is to open pages and to ask them.
package browsertest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

const (
	// Within is how long a condition may take to come true.
	Within   = 20 * time.Second
	every    = 25 * time.Millisecond
	askLimit = 30 * time.Second
)

// Chromium is one process of the browser, with a profile of its own.
type Chromium struct {
	t    testing.TB
	cmd  *exec.Cmd
	in   *os.File
	mu   sync.Mutex // guards what follows
	id   int
	wait map[int]chan answer
	gone chan struct{}
}

type answer struct {
	ID     int             `json:"id"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error"`
}

// Open starts a browser that ends with the test, and skips the test where there is none.
func Open(t testing.TB) *Chromium {
	t.Helper()
	path := ""
	for _, name := range []string{os.Getenv("CHROMIUM"), "chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		t.Skip("there is no Chromium here (CHROMIUM names one)")
	}
	home, err := os.MkdirTemp("", "chromium") // t.TempDir would fail the test over what dying helpers still write
	if err != nil {
		t.Fatal(err)
	}
	b := &Chromium{t: t, wait: map[int]chan answer{}, gone: make(chan struct{})}
	b.start(path, home)
	t.Cleanup(func() {
		b.Kill()
		_ = os.RemoveAll(home)
	})
	return b
}

func (b *Chromium) start(path, home string) {
	b.t.Helper()
	theirIn, in, err := os.Pipe()
	if err != nil {
		b.t.Fatal(err)
	}
	out, theirOut, err := os.Pipe()
	if err != nil {
		b.t.Fatal(err)
	}
	// The sandbox cannot be set up by root, as which containers often run; the pages are our own.
	b.cmd = exec.Command(path, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-extensions",
		"--disable-background-networking", "--disable-component-update", "--remote-debugging-pipe", "--user-data-dir="+filepath.Join(home, "profile"), "about:blank")
	b.cmd.Env = append(os.Environ(), "HOME="+home)
	b.cmd.ExtraFiles = []*os.File{theirIn, theirOut} // 3 and 4
	ownGroup(b.cmd)
	b.in = in
	if err := b.cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	_, _ = theirIn.Close(), theirOut.Close()
	go b.read(out)
}

func (b *Chromium) read(out io.ReadCloser) {
	defer close(b.gone)
	defer out.Close()
	for r := bufio.NewReader(out); ; {
		message, err := r.ReadBytes(0)
		if err != nil {
			return
		}
		var a answer
		if json.Unmarshal(message[:len(message)-1], &a) != nil || a.ID == 0 {
			continue
		}
		b.mu.Lock()
		waiting := b.wait[a.ID]
		delete(b.wait, a.ID)
		b.mu.Unlock()
		if waiting != nil {
			waiting <- a
		}
	}
}

// Kill ends the browser as a crash does: no page hears of it. It may be called twice.
func (b *Chromium) Kill() {
	killGroup(b.cmd)
	_ = b.cmd.Wait()
	_ = b.in.Close()
	<-b.gone
}

func (b *Chromium) ask(session, method string, params map[string]any) (json.RawMessage, error) {
	done := make(chan answer, 1)
	b.mu.Lock()
	b.id++
	id := b.id
	b.wait[id] = done
	message, err := json.Marshal(map[string]any{"id": id, "method": method, "params": params, "sessionId": session})
	if session == "" {
		message, err = json.Marshal(map[string]any{"id": id, "method": method, "params": params})
	}
	if err == nil {
		_, err = b.in.Write(append(message, 0))
	}
	b.mu.Unlock()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", method, err)
	}
	ctx, stop := context.WithTimeout(context.Background(), askLimit)
	defer stop()
	select {
	case a := <-done:
		if a.Error != nil {
			return nil, fmt.Errorf("%s: %s", method, a.Error.Message)
		}
		return a.Result, nil
	case <-b.gone:
		return nil, errors.New(method + ": the browser has ended")
	case <-ctx.Done():
		return nil, fmt.Errorf("%s: %w", method, ctx.Err())
	}
}

func (b *Chromium) must(session, method string, params map[string]any, into any) {
	b.t.Helper()
	result, err := b.ask(session, method, params)
	if err == nil && into != nil {
		err = json.Unmarshal(result, into)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

// Tab is one page of a browser.
type Tab struct {
	b       *Chromium
	session string
}

// Tab opens a page at an address.
func (b *Chromium) Tab(url string) *Tab {
	b.t.Helper()
	var target struct{ TargetID string }
	b.must("", "Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var attached struct{ SessionID string }
	b.must("", "Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
	tab := &Tab{b, attached.SessionID}
	b.must(tab.session, "Page.enable", nil, nil)
	tab.Go(url)
	return tab
}

// Go opens an address in the tab.
func (p *Tab) Go(url string) {
	p.b.t.Helper()
	var landed struct{ ErrorText string }
	p.b.must(p.session, "Page.navigate", map[string]any{"url": url}, &landed)
	if landed.ErrorText != "" {
		p.b.t.Fatalf("%s: %s", url, landed.ErrorText)
	}
	p.Wait("document.readyState === 'complete'")
}

// Reload does what F5 does.
func (p *Tab) Reload() {
	p.b.t.Helper()
	p.Eval("window.beforeReload = true", nil)
	p.b.must(p.session, "Page.reload", nil, nil)
	p.Wait("!window.beforeReload && document.readyState === 'complete'")
}

// Before has a script run in each page of the tab from now on, before the page's own.
func (p *Tab) Before(script string) {
	p.b.t.Helper()
	p.b.must(p.session, "Page.addScriptToEvaluateOnNewDocument", map[string]any{"source": script}, nil)
}

// Frames returns the addresses of what the frames of the page show.
func (p *Tab) Frames() (urls []string) {
	p.b.t.Helper()
	var tree struct {
		FrameTree struct {
			ChildFrames []struct{ Frame struct{ URL string } }
		}
	}
	p.b.must(p.session, "Page.getFrameTree", map[string]any{}, &tree)
	for _, f := range tree.FrameTree.ChildFrames {
		urls = append(urls, f.Frame.URL)
	}
	return urls
}

// Cookie sets a cookie of an address.
func (p *Tab) Cookie(url, name, value string) {
	p.b.t.Helper()
	p.b.must(p.session, "Network.setCookie", map[string]any{"url": url, "name": name, "value": value}, nil)
}

// Narrow makes the window as wide as a phone's, in CSS pixels.
func (p *Tab) Narrow(width int) {
	p.b.t.Helper()
	p.b.must(p.session, "Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": true}, nil)
}

// Screen makes the window as large as a screen of so many CSS pixels, each of which is dpr pixels wide; touch makes it a phone's.
func (p *Tab) Screen(width, height int, dpr float64, touch bool) {
	p.b.t.Helper()
	p.b.must(p.session, "Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": dpr, "mobile": touch}, nil)
	p.b.must(p.session, "Emulation.setTouchEmulationEnabled", map[string]any{"enabled": touch}, nil)
}

// Mouse does what a mouse does at a place: "Moved", "Pressed" or "Released".
func (p *Tab) Mouse(what string, x, y float64) {
	p.b.t.Helper()
	button, buttons := "left", 1
	if what == "Released" {
		buttons = 0
	}
	p.b.must(p.session, "Input.dispatchMouseEvent", map[string]any{"type": "mouse" + what, "x": x, "y": y, "button": button, "buttons": buttons, "clickCount": 1}, nil)
}

// Click presses and releases the mouse at a place.
func (p *Tab) Click(x, y float64) {
	p.b.t.Helper()
	p.Mouse("Pressed", x, y)
	p.Mouse("Released", x, y)
}

// Wheel turns the mouse's wheel by px; ctrl says that the key is held down.
func (p *Tab) Wheel(x, y, px float64, ctrl bool) {
	p.b.t.Helper()
	modifiers := 0
	if ctrl {
		modifiers = 2
	}
	p.b.must(p.session, "Input.dispatchMouseEvent", map[string]any{"type": "mouseWheel", "x": x, "y": y, "deltaX": 0, "deltaY": px, "modifiers": modifiers}, nil)
}

// Touch puts fingers on the screen, moves them or takes them away: "Start", "Move" or "End", which has no points. A point is x and y.
func (p *Tab) Touch(what string, points ...[2]float64) {
	p.b.t.Helper()
	list := []map[string]any{}
	for i, at := range points {
		list = append(list, map[string]any{"x": at[0], "y": at[1], "id": i})
	}
	p.b.must(p.session, "Input.dispatchTouchEvent", map[string]any{"type": "touch" + what, "touchPoints": list}, nil)
}

// Offline cuts the page off as a lid that is closed does, or lets it live on.
func (p *Tab) Offline(off bool) {
	p.b.t.Helper()
	p.b.must(p.session, "Network.enable", nil, nil)
	p.b.must(p.session, "Network.emulateNetworkConditions", map[string]any{"offline": off, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}, nil)
}

func (p *Tab) eval(expression string, into any) error {
	result, err := p.b.ask(p.session, "Runtime.evaluate", map[string]any{"expression": expression, "awaitPromise": true, "returnByValue": true, "userGesture": true})
	if err != nil {
		return err
	}
	var got struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails *struct {
			Text      string
			Exception struct{ Description string }
		}
	}
	if err := json.Unmarshal(result, &got); err != nil {
		return fmt.Errorf("read answer to %s: %w", expression, err)
	}
	if d := got.ExceptionDetails; d != nil {
		return fmt.Errorf("%s: %s %s", expression, d.Text, d.Exception.Description)
	}
	if into == nil || got.Result.Value == nil {
		return nil
	}
	return json.Unmarshal(got.Result.Value, into)
}

// Eval runs an expression in the page, waits for its promise, and reads the value into something that JSON fits, or nil.
func (p *Tab) Eval(expression string, into any) {
	p.b.t.Helper()
	if err := p.eval(expression, into); err != nil {
		p.b.t.Fatal(err)
	}
}

// Text is the visible text of the first element that the selector finds.
func (p *Tab) Text(selector string) (text string) {
	p.b.t.Helper()
	p.Eval(fmt.Sprintf("document.querySelector(%q)?.innerText ?? ''", selector), &text)
	return text
}

// Wait waits until an expression is true in the page.
func (p *Tab) Wait(expression string) { p.b.t.Helper(); p.WaitFor(Within, expression) }

// WaitFor waits at most that long until an expression is true in the page, and returns how long it took.
func (p *Tab) WaitFor(limit time.Duration, expression string) time.Duration {
	p.b.t.Helper()
	start := time.Now()
	for {
		var is bool
		err := p.eval("!!("+expression+")", &is) // fails while a page gives way to another
		if is {
			return time.Since(start)
		}
		if time.Since(start) > limit {
			var text string
			_ = p.eval("location.href + '\\n' + document.body.innerText", &text)
			p.b.t.Fatalf("after %v not true: %s (%v)\n%s", limit, expression, err, text)
		}
		time.Sleep(every)
	}
}

// Picture writes what the tab shows to a file.
func (p *Tab) Picture(path string) {
	p.b.t.Helper()
	var shot struct{ Data []byte }
	p.b.must(p.session, "Page.captureScreenshot", map[string]any{"format": "png", "captureBeyondViewport": true}, &shot)
	if err := os.WriteFile(path, shot.Data, 0o644); err != nil {
		p.b.t.Fatal(err)
	}
}
