//! A picture as data, and the one place that hands it to plotters.
//!
//! Layout decides every place first, so that it can be tested without a pixel; drawing follows. The font is embedded:
//! text is measured and drawn the same on a machine without any.

use std::path::Path;
use std::sync::LazyLock;

use anyhow::{Result, anyhow};
use plotters::backend::{BitMapBackend, DrawingBackend, SVGBackend};
use plotters::coord::Shift;
use plotters::drawing::{DrawingArea, IntoDrawingArea};
use plotters::element::{Circle, PathElement, Rectangle, Text};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, FontDesc, FontFamily, FontStyle, RGBColor, ShapeStyle, TextStyle, register_font};

use super::palette;

/// Pixels of a PNG for each unit of a scene.
pub(super) const PNG_SCALE: u32 = 2;

/// Where a text stands relative to its point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Align {
    /// It starts there.
    Start,
    /// It is centred there.
    Middle,
    /// It ends there.
    End,
}

/// A line of text; `y` is the middle of its height.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Label {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) text: String,
    pub(super) size: f64,
    pub(super) bold: bool,
    pub(super) align: Align,
    pub(super) color: RGBColor,
}

/// One thing to draw.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Shape {
    /// A filled rectangle.
    Box { left: f64, top: f64, right: f64, bottom: f64, color: RGBColor },
    /// A straight line.
    Line { from: (f64, f64), to: (f64, f64), width: f64, color: RGBColor },
    /// A disc, or a ring.
    Dot { x: f64, y: f64, radius: f64, filled: bool, color: RGBColor },
    /// Text.
    Label(Label),
}

/// A picture.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Scene {
    pub(super) width: f64,
    pub(super) height: f64,
    pub(super) shapes: Vec<Shape>,
}

impl Scene {
    /// Adds a line of dashes.
    pub(super) fn dashes(&mut self, from: (f64, f64), to: (f64, f64), color: RGBColor) {
        const DASH: f64 = 5.0;
        const GAP: f64 = 3.5;
        let length = (to.0 - from.0).hypot(to.1 - from.1);
        let at = |distance: f64| {
            let share = (distance / length).min(1.0);
            (from.0 + (to.0 - from.0) * share, from.1 + (to.1 - from.1) * share)
        };
        let mut start = 0.0;
        while start < length {
            self.shapes.push(Shape::Line { from: at(start), to: at(start + DASH), width: 1.6, color });
            start += DASH + GAP;
        }
    }

    /// The picture as SVG. Text stays text, in the viewer's own sans-serif font.
    pub(super) fn svg(&self) -> Result<String> {
        let mut svg = String::new();
        let backend = SVGBackend::with_string(&mut svg, self.pixels(1));
        self.draw(backend, &Pen { scale: 1.0, text_scale: 1.24, text_drop: 0.0 })?;
        Ok(svg)
    }

    /// Writes the picture as PNG; the path must end in `.png`.
    pub(super) fn write_png(&self, path: &Path) -> Result<()> {
        let backend = BitMapBackend::new(path, self.pixels(PNG_SCALE));
        // Measured against the SVG: plotters scales embedded fonts by their line height and sets them too high.
        self.draw(backend, &Pen { scale: f64::from(PNG_SCALE), text_scale: 1.164, text_drop: 0.25 })
    }

    /// Width and height in pixels.
    pub(super) fn pixels(&self, scale: u32) -> (u32, u32) {
        (self.width.ceil() as u32 * scale, self.height.ceil() as u32 * scale)
    }

    fn draw<B: DrawingBackend>(&self, backend: B, pen: &Pen) -> Result<()> {
        embed_font();
        let area = backend.into_drawing_area();
        let drawn = area.fill(&palette::PAPER).and_then(|()| {
            self.shapes.iter().try_for_each(|shape| pen.draw(&area, shape))?;
            area.present()
        });
        drawn.map_err(|error| anyhow!("could not draw a chart: {error}"))
    }
}

/// Units to pixels of one backend.
struct Pen {
    scale: f64,
    /// From the size of the em square to the size this backend wants.
    text_scale: f64,
    /// How far this backend sets text too high, in em.
    text_drop: f64,
}

type Drawn<B> = Result<(), plotters::drawing::DrawingAreaErrorKind<<B as DrawingBackend>::ErrorType>>;

impl Pen {
    fn draw<B: DrawingBackend>(&self, area: &DrawingArea<B, Shift>, shape: &Shape) -> Drawn<B> {
        match shape {
            Shape::Box { left, top, right, bottom, color } => {
                area.draw(&Rectangle::new([self.at(*left, *top), self.at(*right, *bottom)], color.filled()))
            }
            Shape::Line { from, to, width, color } => {
                let style = color.stroke_width((width * self.scale).round().max(1.0) as u32);
                area.draw(&PathElement::new([self.at(from.0, from.1), self.at(to.0, to.1)], style))
            }
            Shape::Dot { x, y, radius, filled, color } => {
                let style = ShapeStyle { filled: *filled, ..color.stroke_width((1.6 * self.scale) as u32) };
                area.draw(&Circle::new(self.at(*x, *y), radius * self.scale, style))
            }
            Shape::Label(label) => self.write(area, label),
        }
    }

    fn write<B: DrawingBackend>(&self, area: &DrawingArea<B, Shift>, label: &Label) -> Drawn<B> {
        let size = label.size * self.scale * self.text_scale;
        let style = TextStyle::from(font(size, label.bold)).color(&label.color).pos(Pos::new(
            match label.align {
                Align::Start => HPos::Left,
                Align::Middle => HPos::Center,
                Align::End => HPos::Right,
            },
            VPos::Center,
        ));
        let place = self.at(label.x, label.y + self.text_drop * label.size);
        area.draw(&Text::new(label.text.clone(), place, style))
    }

    fn at(&self, x: f64, y: f64) -> (i32, i32) {
        ((x * self.scale).round() as i32, (y * self.scale).round() as i32)
    }
}

fn font(size: f64, bold: bool) -> FontDesc<'static> {
    FontDesc::new(FontFamily::SansSerif, size, if bold { FontStyle::Bold } else { FontStyle::Normal })
}

/// Width of a text in units; on the safe side for the narrower fonts of most viewers.
pub(super) fn text_width(text: &str, size: f64, bold: bool) -> f64 {
    // Measured large, because the answer is rounded to whole pixels.
    const MEASURED: f64 = 100.0;
    embed_font();
    let measured = font(MEASURED * 1.164, bold).box_size(text).map_or(0, |(width, _)| width);
    f64::from(measured) * size / MEASURED
}

/// The longest start of a text that fits, with an ellipsis where something is missing.
pub(super) fn fitted(text: &str, size: f64, bold: bool, width: f64) -> String {
    if text_width(text, size, bold) <= width {
        return text.to_owned();
    }
    let mut kept: Vec<char> = text.chars().collect();
    while kept.pop().is_some() {
        let shorter = kept.iter().collect::<String>() + "…";
        if text_width(&shorter, size, bold) <= width {
            return shorter;
        }
    }
    String::new()
}

fn embed_font() {
    static EMBEDDED: LazyLock<()> = LazyLock::new(|| {
        for (style, bytes) in [(FontStyle::Normal, dejavu::sans::regular()), (FontStyle::Bold, dejavu::sans::bold())] {
            assert!(register_font("sans-serif", style, bytes).is_ok(), "the embedded font is a sound font");
        }
    });
    LazyLock::force(&EMBEDDED);
}
