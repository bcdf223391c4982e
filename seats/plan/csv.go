package plan

import (
	"bytes"
	"encoding/csv"
	"errors"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
)

// columns are the names that people give to what a sheet may say, in lower case.
var columns = map[string][]string{
	"section":    {"section", "sector", "zone", "zona", "block", "sektor", "sezione", "bereich"},
	"row":        {"row", "row_number", "row_label", "fila", "reihe", "rang", "rangée"},
	"number":     {"number", "seat", "seat_number", "butaca", "asiento", "numero", "número", "platz", "sitz", "siège"},
	"id":         {"seat_guid", "guid", "id", "seat_id", "uuid"},
	"category":   {"category", "price_category", "categoria", "categoría", "kategorie", "preiskategorie", "catégorie"},
	"x":          {"x", "pos_x"},
	"y":          {"y", "pos_y"},
	"order":      {"row_order", "row_rank", "orden_fila"},
	"rank":       {"adjacency_index", "seat_order", "seat_rank"},
	"accessible": {"accessible", "accesible", "wheelchair", "rollstuhl"},
	"companion":  {"companion", "acompañante", "begleitung"},
	"restricted": {"restricted_view", "obstructed_view", "restricted", "obstructed", "sichtbehindert"},
	"active":     {"active", "activo", "aktiv"},
	"tags":       {"tags", "etiquetas"},
	"capacity":   {"capacity", "capacidad", "kapazität", "aforo"},
}

// sheet reads a CSV file of one seat, or one area with a capacity, a line.
type sheet struct {
	*draft
	at       map[string]int // columns by what they say
	fields   []string
	line     int
	reader   *csv.Reader
	sections map[string]int
	rows     map[[2]string]int
	extras   map[place]extra
}

// extra is what a sheet says for the layout alone.
type extra struct {
	order, rank float64 // of the row from the front, of the seat in the row; NaN if unsaid
	placed      bool
}

func (d *draft) readCSV(data []byte) {
	if !utf8.Valid(data) {
		data, _ = charmap.ISO8859_1.NewDecoder().Bytes(data) // has a rune for every byte
		d.report.note("the file is not UTF-8 and was read as Latin-1")
	}
	head, _, _ := bytes.Cut(data, []byte{'\n'})
	reader := csv.NewReader(bytes.NewReader(data))
	reader.Comma, reader.FieldsPerRecord, reader.ReuseRecord = delimiter(head), -1, true
	header, err := reader.Read()
	if err != nil {
		d.fatal(NotReadable, "1:1", "neither JSON nor CSV")
		return
	}
	s := &sheet{draft: d, reader: reader, at: map[string]int{}, sections: map[string]int{}, rows: map[[2]string]int{}, extras: map[place]extra{}}
	for i, name := range header {
		name = strings.NewReplacer(" ", "_", "-", "_").Replace(strings.ToLower(strings.TrimSpace(name)))
		for column, names := range columns {
			if _, known := s.at[column]; !known && slices.Contains(names, name) {
				s.at[column] = i
			}
		}
	}
	_, numbered := s.at["number"]
	_, capacity := s.at["capacity"]
	if !numbered && !capacity {
		d.fatal(NotReadable, "1:1", "neither JSON nor CSV with a header that has a column for the seat")
		return
	}
	d.report.Format = "csv"
	if _, ok := s.at["section"]; !ok {
		d.report.note("the file has no sections; everything is in Main")
	}
	if _, ok := s.at["category"]; !ok {
		d.report.note("the file has no categories; everything is in " + standard)
	}
	s.readLines()
	s.layOut()
}

// delimiter is the one that a header has most of.
func delimiter(header []byte) rune {
	best, most := ',', 0
	for _, r := range ",;\t" {
		if n := bytes.Count(header, []byte(string(r))); n > most {
			best, most = r, n
		}
	}
	return best
}

func (s *sheet) readLines() {
	for n := 0; n%stride != 0 || s.ctx.Err() == nil; n++ {
		var err error
		s.fields, err = s.reader.Read()
		if errors.Is(err, io.EOF) {
			return
		}
		if broken, ok := errors.AsType[*csv.ParseError](err); ok {
			at := place{line: int32(broken.Line), column: int32(broken.Column)}
			s.fatal(NotReadable, at.String(), broken.Err.Error())
			return
		}
		s.line, _ = s.reader.FieldPos(0)
		s.readLine()
	}
}

func (s *sheet) readLine() {
	at := place{line: int32(s.line), column: 1}
	section, row, category := s.text("section"), s.text("row"), s.text("category")
	if _, ok := s.at["section"]; !ok {
		section = "Main"
	}
	if _, ok := s.at["category"]; !ok {
		category = standard
	}
	number := s.text("number")
	if capacity := s.text("capacity"); capacity != "" && number == "" {
		n, err := strconv.Atoi(capacity)
		if err != nil || n < 0 || n > 1e9 {
			s.wrong("capacity", "a whole number from 0 up")
			n = 0
		}
		if len(s.plan.Areas) <= maxParts {
			s.plan.Areas = append(s.plan.Areas, Area{Name: section, Category: category, Capacity: n, at: at})
		}
	} else {
		seat := Seat{
			Number: number, ID: s.text("id"), Category: category, at: at,
			Accessible: s.flag("accessible", false), Companion: s.flag("companion", false),
			RestrictedView: s.flag("restricted", false), Inactive: !s.flag("active", true),
		}
		for tag := range strings.SplitSeq(s.text("tags"), "|") {
			if tag = strings.TrimSpace(tag); tag != "" && len(seat.Tags) <= maxTags {
				seat.Tags = append(seat.Tags, tag)
			}
		}
		if !s.room(1) {
			return
		}
		s.keep(section, row, seat)
	}
	if category != "" {
		s.category(category, at)
	}
}

// keep puts a seat into its section and row, wherever in the file those began.
func (s *sheet) keep(section, row string, seat Seat) {
	i, known := s.sections[section]
	if !known {
		if len(s.plan.Sections) > maxParts {
			return
		}
		i = len(s.plan.Sections)
		s.sections[section] = i
		s.plan.Sections = append(s.plan.Sections, Section{Name: section, at: seat.at})
	}
	to := &s.plan.Sections[i]
	j, known := s.rows[[2]string{section, row}]
	if !known {
		if !s.rowRoom() {
			return
		}
		j = len(to.Rows)
		s.rows[[2]string{section, row}] = j
		to.Rows = append(to.Rows, Row{Label: row, at: seat.at})
	}
	e := extra{order: s.number("order"), rank: s.number("rank"), placed: s.text("x") != "" && s.text("y") != ""}
	if e.placed {
		seat.Point = Point{s.number("x"), s.number("y")}
	}
	s.extras[seat.at] = e
	to.Rows[j].Seats = append(to.Rows[j].Seats, seat)
}

func (s *sheet) text(column string) string {
	i, known := s.at[column]
	if !known || i >= len(s.fields) {
		return ""
	}
	return strings.Clone(strings.TrimSpace(s.fields[i])) // not a part of the line, which would stay in memory
}

// number is NaN where the sheet has nothing, or no number. A decimal comma is one.
func (s *sheet) number(column string) float64 {
	text := s.text(column)
	if text == "" {
		return math.NaN()
	}
	f, err := strconv.ParseFloat(strings.Replace(text, ",", ".", 1), 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		s.wrong(column, "a number")
	}
	return f
}

func (s *sheet) flag(column string, otherwise bool) bool {
	switch strings.ToLower(s.text(column)) {
	case "":
		return otherwise
	case "true", "1", "yes", "y", "x", "si", "sí", "ja", "oui", "wahr", "verdadero":
		return true
	case "false", "0", "no", "n", "nein", "non", "falsch", "falso":
		return false
	}
	s.wrong(column, "true or false")
	return otherwise
}

func (s *sheet) wrong(column, want string) {
	line, col := s.reader.FieldPos(s.at[column])
	at := place{line: int32(line), column: int32(col)}
	s.report.defect(WrongType, Error, at.String(), want+" is needed, and there is "+excerpt(s.text(column)))
}
