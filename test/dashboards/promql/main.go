// Evaluates queries over scraped pages with Prometheus' own text parser and query engine, and checks alert rules. Reads JSON from standard
// input and writes JSON to standard output; nothing is stored, and nothing is sent.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"sort"
	"strconv"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
)

type scrape struct {
	TimeMs int64             `json:"timeMs"`
	Labels map[string]string `json:"labels"`
	Text   string            `json:"text"`
}

type input struct {
	Scrapes []scrape `json:"scrapes"`
	Queries []string `json:"queries"`
	// Milliseconds since 1970 at which the queries are evaluated.
	AtMs  int64  `json:"atMs"`
	Rules string `json:"rules"`
}

type element struct {
	Labels map[string]string `json:"labels"`
	// A text, because JSON has no NaN.
	Value string `json:"value"`
}

type result struct {
	Error    string    `json:"error,omitempty"`
	Elements []element `json:"elements"`
}

type output struct {
	Results    []result `json:"results"`
	RuleErrors []string `json:"ruleErrors"`
}

type sample struct {
	t int64
	f float64
}

func (s sample) T() int64                      { return s.t }
func (s sample) ST() int64                     { return 0 }
func (s sample) F() float64                    { return s.f }
func (s sample) H() *histogram.Histogram       { return nil }
func (s sample) FH() *histogram.FloatHistogram { return nil }
func (s sample) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (s sample) Copy() chunks.Sample           { return s }

type series struct {
	labels  labels.Labels
	samples []chunks.Sample
}

type memory struct {
	byLabels map[string]*series
}

// A scraper refuses the whole page for one bad line, and so does this.
func (m *memory) add(page scrape) error {
	text, err := textparse.New([]byte(page.Text), "text/plain; version=0.0.4", labels.NewSymbolTable(), textparse.ParserOptions{})
	if err != nil {
		return err
	}
	for {
		entry, err := text.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if entry != textparse.EntrySeries {
			continue
		}
		_, at, value := text.Series()
		if at == nil {
			at = &page.TimeMs
		}
		var own labels.Labels
		text.Labels(&own)
		builder := labels.NewBuilder(own)
		for name, value := range page.Labels {
			builder.Set(name, value)
		}
		all := builder.Labels()
		key := all.String()
		known := m.byLabels[key]
		if known == nil {
			known = &series{labels: all}
			m.byLabels[key] = known
		}
		if last := len(known.samples) - 1; last >= 0 && known.samples[last].T() >= *at {
			return fmt.Errorf("duplicate sample of %s", key)
		}
		known.samples = append(known.samples, sample{*at, value})
	}
}

type found struct {
	all []storage.Series
	at  int
}

func (f *found) Next() bool                        { f.at++; return f.at < len(f.all) }
func (f *found) At() storage.Series                { return f.all[f.at] }
func (f *found) Err() error                        { return nil }
func (f *found) Warnings() annotations.Annotations { return nil }

func (m *memory) selected(_ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	var all []storage.Series
	for _, one := range m.byLabels {
		matches := true
		for _, matcher := range matchers {
			matches = matches && matcher.Matches(one.labels.Get(matcher.Name))
		}
		if matches {
			all = append(all, storage.NewListSeries(one.labels, one.samples))
		}
	}
	sort.Slice(all, func(a, b int) bool { return labels.Compare(all[a].Labels(), all[b].Labels()) < 0 })
	return &found{all: all, at: -1}
}

func evaluate(engine *promql.Engine, from storage.Queryable, query string, at time.Time) result {
	prepared, err := engine.NewInstantQuery(context.Background(), from, nil, query, at)
	if err != nil {
		return result{Error: err.Error()}
	}
	defer prepared.Close()
	evaluated := prepared.Exec(context.Background())
	if evaluated.Err != nil {
		return result{Error: evaluated.Err.Error()}
	}
	switch value := evaluated.Value.(type) {
	case promql.Vector:
		elements := []element{}
		for _, one := range value {
			elements = append(elements, element{one.Metric.Map(), text(one.F)})
		}
		return result{Elements: elements}
	case promql.Scalar:
		return result{Elements: []element{{map[string]string{}, text(value.V)}}}
	}
	return result{Error: "the value is neither a vector nor a scalar"}
}

func text(value float64) string {
	if math.IsNaN(value) {
		return "NaN"
	}
	return strconv.FormatFloat(value, 'g', -1, 64)
}

func run() error {
	var in input
	if err := json.NewDecoder(os.Stdin).Decode(&in); err != nil {
		return err
	}
	pages := &memory{byLabels: map[string]*series{}}
	for _, page := range in.Scrapes {
		if err := pages.add(page); err != nil {
			return fmt.Errorf("page of %v: %w", page.Labels, err)
		}
	}
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 50_000_000, Timeout: time.Minute, LookbackDelta: 5 * time.Minute})
	from := &storage.MockQueryable{MockQuerier: &storage.MockQuerier{SelectMockFunction: pages.selected}}
	out := output{RuleErrors: []string{}}
	for _, query := range in.Queries {
		out.Results = append(out.Results, evaluate(engine, from, query, time.UnixMilli(in.AtMs)))
	}
	if in.Rules != "" {
		_, problems := rulefmt.Parse([]byte(in.Rules), false, model.UTF8Validation, parser.NewParser(parser.Options{}), slog.Default())
		for _, problem := range problems {
			out.RuleErrors = append(out.RuleErrors, problem.Error())
		}
	}
	return json.NewEncoder(os.Stdout).Encode(out)
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
