//! Pure: a chart's numbers to a scene of bar panels.
//!
//! ```text
//! title
//! workload, durability
//! legend
//! panel title      unit, direction | panel title      unit, direction
//! name ▇▇▇▇▇▇▇▇ 1.40 M/s           | name ▇▇▇▇ 700 K/s
//! name ▇▇ 310 K/s                  | name timeout
//! 0      500 K/s     1 M/s         | 0      500 K/s
//! notes
//! ```
//!
//! On a linear axis a bar's length is its value. A logarithmic axis has no zero to measure a bar from, so values are
//! dots there, and the panel says so.

use plotters::style::RGBColor;

use super::palette::{ALARM, AXIS, GRID, INK, MUTED, PAPER};
use super::scale::{Scale, needs_log};
use super::scene::{Align, Label, Scene, Shape, fitted, text_width};
use crate::report::compare::Better;
use crate::report::format::Unit;

/// Width of every chart.
pub(super) const WIDTH: f64 = 1200.0;

const MARGIN: f64 = 40.0;
const GUTTER: f64 = 48.0;
const ROW: f64 = 25.0;
const BAR: f64 = 15.0;
const NAME_MAX: f64 = 170.0;
const PANEL_GAP: f64 = 30.0;

/// Sizes of text.
mod size {
    pub(super) const TITLE: f64 = 27.0;
    pub(super) const SUBTITLE: f64 = 14.0;
    pub(super) const PANEL: f64 = 15.0;
    pub(super) const NAME: f64 = 13.0;
    pub(super) const SMALL: f64 = 11.0;
}

/// One chart.
#[derive(Clone, Debug)]
pub(super) struct Chart {
    pub(super) title: &'static str,
    pub(super) subtitle: String,
    /// One or two panels beside each other.
    pub(super) rows: Vec<Vec<Panel>>,
    /// Whether all panels take a logarithmic axis when one of them needs it.
    pub(super) uniform: bool,
    pub(super) legend: Vec<(String, RGBColor)>,
    /// Said under the panels.
    pub(super) notes: Vec<String>,
}

/// One quantity, a bar for each contender.
#[derive(Clone, Debug)]
pub(super) struct Panel {
    pub(super) title: String,
    pub(super) unit: Unit,
    pub(super) better: Better,
    pub(super) bars: Vec<Bar>,
    /// Value of the floor, drawn as a line.
    pub(super) floor: Option<f64>,
    /// Whether it takes the width of the page.
    pub(super) wide: bool,
}

/// One contender in a panel.
#[derive(Clone, Debug)]
pub(super) struct Bar {
    pub(super) label: String,
    pub(super) color: RGBColor,
    pub(super) outcome: Outcome,
}

/// What a bar shows.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Outcome {
    /// A number.
    Measured { value: f64, spread: Option<(f64, f64)>, best: bool, note: Option<String> },
    /// Nothing was measured; in words.
    Absent { reason: String, alarm: bool },
}

impl Bar {
    fn value(&self) -> Option<f64> {
        match self.outcome {
            Outcome::Measured { value, .. } => Some(value),
            Outcome::Absent { .. } => None,
        }
    }
}

impl Panel {
    /// Says beside each number that is not zero how often `unit` is in it.
    pub(super) fn with_notes(mut self, unit: Option<f64>, say: impl Fn(f64) -> String) -> Self {
        for bar in &mut self.bars {
            if let Outcome::Measured { value, note, .. } = &mut bar.outcome {
                *note = unit.filter(|unit| *unit > 0.0 && *value > 0.0).map(|unit| say(*value / unit));
            }
        }
        self
    }

    /// Best value first, what has none last.
    fn sort(&mut self) {
        let better = self.better;
        self.bars.sort_by(|a, b| match (a.value(), b.value()) {
            (Some(a), Some(b)) if better == Better::Higher => b.total_cmp(&a),
            (Some(a), Some(b)) => a.total_cmp(&b),
            (a, b) => b.is_some().cmp(&a.is_some()),
        });
    }

    /// Everything that needs a place on the axis.
    fn values(&self) -> Vec<f64> {
        let bars = self.bars.iter().flat_map(|bar| match bar.outcome {
            Outcome::Measured { value, spread, .. } => vec![value, spread.map_or(value, |spread| spread.1)],
            Outcome::Absent { .. } => Vec::new(),
        });
        bars.chain(self.floor).collect()
    }

    fn caption(&self, log: bool) -> String {
        let unit = match self.unit {
            Unit::Rate => "ops/s",
            Unit::Millis => "time",
            Unit::Bytes => "bytes",
        };
        let direction = if self.better == Better::Higher { "higher is better" } else { "lower is better" };
        format!("{unit}{} · {direction}", if log { ", log scale" } else { "" })
    }

    fn height(&self) -> f64 {
        28.0 + if self.floor.is_some() { 15.0 } else { 0.0 } + self.bars.len() as f64 * ROW + 24.0
    }
}

/// Lays a chart out.
pub(super) fn layout(chart: &Chart) -> Scene {
    let mut page = Page { scene: Scene { width: WIDTH, ..Scene::default() }, y: 0.0 };
    page.head(chart);
    page.legend(chart);
    page.panels(chart);
    page.notes(chart);
    page.scene.height = (page.y + MARGIN * 0.6).ceil();
    page.scene
}

/// A scene that is filled from the top.
struct Page {
    scene: Scene,
    y: f64,
}

impl Page {
    fn head(&mut self, chart: &Chart) {
        let room = WIDTH - 2.0 * MARGIN;
        let title = fitted(chart.title, size::TITLE, true, room);
        self.write(MARGIN, 48.0, &title, size::TITLE, true, Align::Start, INK);
        let subtitle = fitted(&chart.subtitle, size::SUBTITLE, false, room);
        self.write(MARGIN, 79.0, &subtitle, size::SUBTITLE, false, Align::Start, MUTED);
        self.y = 108.0;
    }

    fn legend(&mut self, chart: &Chart) {
        const SWATCH: f64 = 13.0;
        let has_floor_line = chart.rows.iter().flatten().any(|panel| panel.floor.is_some());
        let mut x = MARGIN;
        for (label, color) in &chart.legend {
            let text = fitted(label, size::NAME, false, NAME_MAX * 1.6);
            let width = SWATCH + 7.0 + text_width(&text, size::NAME, false);
            if x + width > WIDTH - MARGIN {
                (x, self.y) = (MARGIN, self.y + 22.0);
            }
            let (top, bottom) = (self.y - SWATCH / 2.0, self.y + SWATCH / 2.0);
            if has_floor_line && label == crate::report::compare::FLOOR {
                self.scene.dashes((x + SWATCH / 2.0, top - 2.0), (x + SWATCH / 2.0, bottom + 2.0), *color);
            } else {
                self.scene.shapes.push(Shape::Box { left: x, top, right: x + SWATCH, bottom, color: *color });
            }
            self.write(x + SWATCH + 7.0, self.y, &text, size::NAME, false, Align::Start, INK);
            x += width + 24.0;
        }
        self.y += 34.0;
    }

    fn panels(&mut self, chart: &Chart) {
        if chart.rows.is_empty() {
            let text = "This run has no phase of this kind.";
            self.write(MARGIN, self.y, text, size::PANEL, false, Align::Start, MUTED);
            self.y += PANEL_GAP;
        }
        let all_log = chart.uniform && chart.rows.iter().flatten().any(|panel| needs_log(&panel.values()));
        for row in &chart.rows {
            for (column, panel) in row.iter().enumerate() {
                let width = if panel.wide { WIDTH - 2.0 * MARGIN } else { (WIDTH - 2.0 * MARGIN - GUTTER) / 2.0 };
                let left = MARGIN + column as f64 * (width + GUTTER);
                self.panel(panel, left, width, all_log);
            }
            self.y += row.iter().map(Panel::height).fold(0.0, f64::max) + PANEL_GAP;
        }
    }

    fn panel(&mut self, panel: &Panel, left: f64, width: f64, log: bool) {
        let mut panel = panel.clone();
        panel.sort();
        let scale = Scale::new(&panel.values(), log || needs_log(&panel.values()));
        let caption = panel.caption(matches!(scale, Scale::Log { .. }));
        let right = left + width;
        let room = width - text_width(&caption, size::SMALL, false) - 16.0;
        let title = fitted(&panel.title, size::PANEL, true, room);
        self.write(left, self.y + 6.0, &title, size::PANEL, true, Align::Start, INK);
        self.write(right, self.y + 7.0, &caption, size::SMALL, false, Align::End, MUTED);

        let names = panel.bars.iter().map(|bar| text_width(&bar.label, size::NAME, false)).fold(40.0, f64::max);
        let plot_left = left + names.min(NAME_MAX) + 12.0;
        let values = panel.bars.iter().map(|bar| value_width(&panel, bar)).fold(40.0, f64::max);
        let top = self.y + 28.0 + if panel.floor.is_some() { 15.0 } else { 0.0 };
        let bottom = top + panel.bars.len() as f64 * ROW;
        let plot = Plot { scale, left: plot_left, right: right - values - 14.0, top, bottom };
        self.grid(&plot, panel.unit);
        for (index, bar) in panel.bars.iter().enumerate() {
            self.mark(&plot, bar, top + (index as f64 + 0.5) * ROW);
        }
        self.floor(&plot, &panel, right);
        for (index, bar) in panel.bars.iter().enumerate() {
            self.texts(&plot, &panel, bar, left, top + (index as f64 + 0.5) * ROW);
        }
    }

    fn grid(&mut self, plot: &Plot, unit: Unit) {
        let mut free_from = f64::NEG_INFINITY;
        for tick in plot.scale.ticks(unit) {
            let x = plot.x(tick);
            let (from, to) = ((x, plot.top), (x, plot.bottom));
            self.scene.shapes.push(Shape::Line { from, to, width: 1.0, color: GRID });
            let text = tick_label(unit, tick);
            let width = text_width(&text, size::SMALL, false);
            if x - width / 2.0 > free_from {
                self.write(x, plot.bottom + 12.0, &text, size::SMALL, false, Align::Middle, MUTED);
                free_from = x + width / 2.0 + 8.0;
            }
        }
        let (from, to) = ((plot.left, plot.top), (plot.left, plot.bottom));
        self.scene.shapes.push(Shape::Line { from, to, width: 1.0, color: AXIS });
    }

    /// The bar or dot itself. Nothing is drawn for what was not measured, and no bar for a zero.
    fn mark(&mut self, plot: &Plot, bar: &Bar, y: f64) {
        let Outcome::Measured { value, spread, .. } = bar.outcome else { return };
        let (x, color) = (plot.x(value), bar.color);
        if matches!(plot.scale, Scale::Log { .. }) {
            self.scene.shapes.push(Shape::Line { from: (plot.left, y), to: (x, y), width: 1.0, color: AXIS });
            self.scene.shapes.push(Shape::Dot { x, y, radius: 5.5, filled: value > 0.0, color });
        } else if value > 0.0 {
            let (top, bottom) = (y - BAR / 2.0, y + BAR / 2.0);
            self.scene.shapes.push(Shape::Box { left: plot.left, top, right: x, bottom, color });
        }
        if let Some((low, high)) = spread {
            let (low, high) = (plot.x(low), plot.x(high));
            for (from, to) in
                [((low, y), (high, y)), ((low, y - 3.5), (low, y + 3.5)), ((high, y - 3.5), (high, y + 3.5))]
            {
                self.scene.shapes.push(Shape::Line { from, to, width: 1.0, color: INK });
            }
        }
    }

    fn floor(&mut self, plot: &Plot, panel: &Panel, right: f64) {
        let Some(value) = panel.floor else { return };
        let x = plot.x(value);
        self.scene.dashes((x, plot.top - 4.0), (x, plot.bottom), MUTED);
        let text = format!("floor {}", panel.unit.short(value));
        let half = text_width(&text, size::SMALL, false) / 2.0;
        let middle = x.max(plot.left + half).min(right - half);
        self.write(middle, plot.top - 11.0, &text, size::SMALL, false, Align::Middle, MUTED);
    }

    fn texts(&mut self, plot: &Plot, panel: &Panel, bar: &Bar, left: f64, y: f64) {
        let name = fitted(&bar.label, size::NAME, false, plot.left - left - 11.0);
        self.write(plot.left - 10.0, y, &name, size::NAME, false, Align::End, INK);
        let (x, color, bold) = match &bar.outcome {
            Outcome::Measured { value, spread, best, .. } => {
                let end = plot.x(spread.map_or(*value, |spread| spread.1.max(*value)));
                let dot = if matches!(plot.scale, Scale::Log { .. }) { 6.0 } else { 0.0 };
                (end + dot + 7.0, INK, *best)
            }
            Outcome::Absent { alarm, .. } => (plot.left + 8.0, if *alarm { ALARM } else { MUTED }, false),
        };
        let text = value_label(panel, bar);
        let right = x + text_width(&text, size::NAME, bold) + 2.0;
        let (top, bottom) = (y - 8.0, y + 8.0);
        self.scene.shapes.push(Shape::Box { left: x - 3.0, top, right, bottom, color: PAPER });
        self.write(x, y, &text, size::NAME, bold, Align::Start, color);
    }

    fn notes(&mut self, chart: &Chart) {
        for note in &chart.notes {
            let text = fitted(note, size::SMALL, false, WIDTH - 2.0 * MARGIN);
            self.write(MARGIN, self.y, &text, size::SMALL, false, Align::Start, MUTED);
            self.y += 17.0;
        }
    }

    #[expect(clippy::too_many_arguments, reason = "one argument for each property of a line of text")]
    fn write(&mut self, x: f64, y: f64, text: &str, size: f64, bold: bool, align: Align, color: RGBColor) {
        if !text.is_empty() {
            self.scene.shapes.push(Shape::Label(Label { x, y, text: text.to_owned(), size, bold, align, color }));
        }
    }
}

/// The part of a panel where values have a place.
struct Plot {
    scale: Scale,
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

impl Plot {
    fn x(&self, value: f64) -> f64 {
        self.left + self.scale.place(value) * (self.right - self.left).max(1.0)
    }
}

fn value_label(panel: &Panel, bar: &Bar) -> String {
    match &bar.outcome {
        Outcome::Measured { value, note: Some(note), .. } => format!("{}  {note}", panel.unit.short(*value)),
        Outcome::Measured { value, note: None, .. } => panel.unit.short(*value),
        Outcome::Absent { reason, .. } => reason.clone(),
    }
}

/// Room that a bar's label needs beyond the longest bar. Words stand inside the plot and need none.
fn value_width(panel: &Panel, bar: &Bar) -> f64 {
    let log_dot = 6.0;
    bar.value().map_or(0.0, |_| text_width(&value_label(panel, bar), size::NAME, true) + log_dot)
}

/// A tick in short form without the zeros that carry nothing: `1 M/s`, not `1.00 M/s`.
fn tick_label(unit: Unit, tick: f64) -> String {
    if tick == 0.0 {
        return "0".to_owned();
    }
    let text = unit.short(tick);
    let digits = text.find([' ', '/', 'e']).unwrap_or(text.len());
    let (number, rest) = text.split_at(digits);
    let number = if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { number };
    format!("{number}{rest}")
}
