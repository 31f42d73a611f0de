//! Line plots as SVG files, by `plotters`: so much as the benchmarks need.

use std::path::Path;

use plotters::prelude::*;

type Error = Box<dyn std::error::Error>;

/// A plot of lines over two axes.
pub(crate) struct Plot<'a> {
    pub(crate) title: &'a str,
    pub(crate) x: Axis<'a>,
    pub(crate) y: Axis<'a>,
    pub(crate) lines: Vec<Line>,
}

/// A name, and points from left to right.
pub(crate) type Line = (String, Vec<(f64, f64)>);

/// What an axis shows.
#[derive(Clone, Copy)]
pub(crate) struct Axis<'a> {
    pub(crate) name: &'a str,
    /// Equal quotients, not equal differences, are equally far apart.
    pub(crate) logarithmic: bool,
    /// The axis begins here, where it would begin higher.
    pub(crate) from: f64,
}

impl Plot<'_> {
    /// Draws the plot into a file.
    ///
    /// # Errors
    ///
    /// There are no points, or the file cannot be written.
    pub(crate) fn write(&self, path: &Path) -> Result<(), Error> {
        let points = || self.lines.iter().flat_map(|(_, points)| points);
        let range = |axis: Axis<'_>, of: fn(&(f64, f64)) -> f64, room: f64| {
            let most = points().map(of).fold(f64::NEG_INFINITY, f64::max);
            let least = points().map(of).fold(axis.from, f64::min);
            let scale = |value: f64| {
                if axis.logarithmic {
                    value.log10()
                } else {
                    value
                }
            };
            let (low, high) = (scale(least), scale(most));
            low..high + (high - low) * room
        };
        if points().next().is_none() {
            return Err(format!("{}: nothing to draw", path.display()).into());
        }
        let area = SVGBackend::new(path, (860, 480)).into_drawing_area();
        area.fill(&WHITE)?;
        // A little room above, and to the right so much as the names need.
        let (x_range, y_range) = (
            range(self.x, |point| point.0, 0.35),
            range(self.y, |point| point.1, 0.05),
        );
        let mut chart = ChartBuilder::on(&area)
            .caption(self.title, ("sans-serif", 18))
            .margin(12)
            .x_label_area_size(40)
            .y_label_area_size(60)
            .build_cartesian_2d(x_range, y_range)?;
        let label = |axis: Axis<'_>| {
            move |value: &f64| match axis.logarithmic {
                true => short(10_f64.powf(*value)),
                false => short(*value),
            }
        };
        chart
            .configure_mesh()
            .light_line_style(WHITE)
            .x_desc(self.x.name)
            .y_desc(self.y.name)
            .x_label_formatter(&label(self.x))
            .y_label_formatter(&label(self.y))
            .draw()?;
        let place = |axis: Axis<'_>, value: f64| match axis.logarithmic {
            true => value.log10(),
            false => value,
        };
        for (index, (name, points)) in self.lines.iter().enumerate() {
            let color = Palette99::pick(index).to_rgba();
            let points: Vec<(f64, f64)> = points
                .iter()
                .map(|&(x, y)| (place(self.x, x), place(self.y, y)))
                .collect();
            let circles = points
                .iter()
                .map(|&point| Circle::new(point, 2, color.filled()));
            chart.draw_series(circles)?;
            chart
                .draw_series(LineSeries::new(points, color.stroke_width(2)))?
                .label(name.as_str())
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], color));
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::MiddleRight)
            .background_style(WHITE.mix(0.8))
            .border_style(BLACK.mix(0.3))
            .draw()?;
        area.present()?;
        Ok(())
    }
}

/// A number in few characters.
fn short(value: f64) -> String {
    match value {
        _ if value >= 1e6 => format!("{:.0}M", value / 1e6),
        _ if value >= 1e3 => format!("{:.0}k", value / 1e3),
        _ if value >= 10.0 || value == 0.0 => format!("{value:.0}"),
        _ => format!("{value:.1}"),
    }
}

#[cfg(test)]
mod tests {
    use super::{Axis, Plot, short};

    #[test]
    fn numbers_are_short() {
        let numbers = [0.0, 0.25, 7.0, 40.0, 2048.0, 16_777_216.0];
        assert_eq!(numbers.map(short), ["0", "0.2", "7.0", "40", "2k", "17M"]);
    }

    #[test]
    fn a_plot_has_its_names_and_one_mark_for_each_point() {
        let axis = |name| Axis {
            name,
            logarithmic: true,
            from: 1.0,
        };
        let plot = Plot {
            title: "time over length",
            x: axis("bytes"),
            y: axis("ns"),
            lines: vec![("blanks".to_owned(), vec![(1.0, 2.0), (1000.0, 3.0)])],
        };
        let folder = std::env::temp_dir().join(format!("bytepair-plot-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let path = folder.join("plot.svg");
        plot.write(&path).expect("drawn");
        let svg = std::fs::read_to_string(&path).expect("there");
        for name in ["time over length", "bytes", "ns", "blanks"] {
            assert!(svg.contains(name), "{name}");
        }
        assert_eq!(svg.matches("<circle").count(), 2);
        std::fs::remove_dir_all(folder).expect("removed");
    }
}
