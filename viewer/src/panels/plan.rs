//! A plan as a picture: which thread or block computes which cells, and where the cells stay.

use abide::plan::{PersistentProgram, Schedule};
use abide::{CachePolicy, Plan};
use egui::{
    Align2, Color32, CornerRadius, FontId, Painter, Pos2, Rect, RichText, Sense, Stroke, StrokeKind,
    TextStyle, Ui, pos2, vec2,
};

/// Height of the picture, in points.
const HEIGHT: f32 = 150.0;

/// The place where cells stay.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Home {
    Registers,
    Shared,
    Memory,
    Halo,
}

impl Home {
    fn colour(self) -> Color32 {
        match self {
            Home::Registers => Color32::from_rgb(224, 122, 62),
            Home::Shared => Color32::from_rgb(66, 146, 198),
            Home::Memory => Color32::from_gray(128),
            Home::Halo => Color32::from_rgb(206, 186, 74),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Home::Registers => "registers",
            Home::Shared => "shared memory",
            Home::Memory => "device memory",
            Home::Halo => "halo",
        }
    }
}

/// Shows the picture, its legend, and the share of the domain that stays on the chip.
pub fn picture(ui: &mut Ui, plan: &Plan) {
    let (rect, response) = ui.allocate_exact_size(vec2(ui.available_width(), HEIGHT), Sense::hover());
    let label = format!("Plan: {}", plan.summary());
    response.widget_info(|| egui::WidgetInfo::labeled(egui::Role::Image, true, &label));
    let sheet = Sheet {
        painter: ui.painter_at(rect),
        ink: ui.visuals().text_color(),
        font: TextStyle::Small.resolve(ui.style()),
    };
    let homes = match &plan.schedule {
        Schedule::Cpu(rows) => sheet.rows(rect, rows.threads),
        Schedule::Stepwise(tiles) | Schedule::PersistentProgram(PersistentProgram { tiles, .. }) => {
            let shape = plan.shape.padded();
            let halo = tiles.shared_bytes.iter().any(|&bytes| bytes > 0);
            sheet.tiles(rect, [shape[1], shape[2]], [tiles.tile[1], tiles.tile[2]], halo)
        }
        Schedule::Persistent(persistent) => {
            let planes = persistent.planes[1];
            sheet.sweep(rect, persistent.planes_registers.min(planes), persistent.planes_shared, planes)
        }
        Schedule::Resident(resident) => {
            let registers = resident.planes_registers;
            sheet.sweep(rect, registers, resident.planes - registers, resident.planes)
        }
        Schedule::WarpStreaming(stream) => {
            let margin = stream.margin[2] as f32 / stream.window()[1].max(1) as f32;
            sheet.stages(rect, stream.depth, margin, "planes stream through")
        }
        Schedule::PortableStreaming(planes) => {
            let margin = planes.margin[2][0] as f32 / planes.window()[1].max(1) as f32;
            sheet.stages(rect, planes.configuration.depth, margin, "planes stream through")
        }
        Schedule::Overlapped(blocks) => {
            let margin = blocks.halo[2][0] as f32 / blocks.window()[2].max(1) as f32;
            sheet.stages(rect, blocks.configuration.depth, margin, "windows stay in shared memory")
        }
    };
    ui.horizontal(|ui| {
        ui.spacing_mut().item_spacing.x = 5.0;
        for home in homes {
            let (square, _) = ui.allocate_exact_size(vec2(10.0, 10.0), Sense::hover());
            ui.painter().rect_filled(square, CornerRadius::same(2), home.colour());
            ui.label(RichText::new(home.name()).small());
            ui.add_space(4.0);
        }
    });
    if plan.cache != CachePolicy::None {
        share(ui, plan);
    }
}

/// Shows a bar of the domain, divided by where its cells stay.
fn share(ui: &mut Ui, plan: &Plan) {
    let total = plan.traffic.cells.max(1.0);
    let registers = plan.traffic.cached_registers / total;
    let shared = plan.traffic.cached_shared / total;
    let (rect, _) = ui.allocate_exact_size(vec2(ui.available_width(), 12.0), Sense::hover());
    let mut from = rect.min.x;
    for (share, home) in [(registers, Home::Registers), (shared, Home::Shared), (1.0, Home::Memory)] {
        let to = (from + rect.width() * share as f32).min(rect.max.x);
        let part = Rect::from_min_max(pos2(from, rect.min.y), pos2(to, rect.max.y));
        ui.painter().rect_filled(part, CornerRadius::ZERO, home.colour());
        from = to;
    }
    let text = format!("{:.1} % of the domain stays on the chip", 100.0 * plan.cached_share());
    ui.label(RichText::new(text).small());
}

struct Sheet {
    painter: Painter,
    ink: Color32,
    font: FontId,
}

impl Sheet {
    fn block(&self, rect: Rect, fill: Color32) {
        self.painter.rect_filled(rect, CornerRadius::ZERO, fill);
        self.painter.rect_stroke(
            rect,
            CornerRadius::ZERO,
            Stroke::new(1.0, self.ink.gamma_multiply(0.5)),
            StrokeKind::Inside,
        );
    }

    fn text(&self, at: Pos2, align: Align2, text: &str) {
        self.painter.text(at, align, text, self.font.clone(), self.ink);
    }

    /// Draws bands of rows, one for each thread.
    fn rows(&self, rect: Rect, threads: usize) -> Vec<Home> {
        let square = Rect::from_min_size(rect.min + vec2(4.0, 6.0), vec2(HEIGHT, HEIGHT - 12.0));
        let shown = threads.clamp(1, 16);
        let height = square.height() / shown as f32;
        for band in 0..shown {
            let min = square.min + vec2(0.0, band as f32 * height);
            let fade = if band % 2 == 0 { 1.0 } else { 0.7 };
            self.block(
                Rect::from_min_size(min, vec2(square.width(), height)),
                Home::Memory.colour().gamma_multiply(fade),
            );
            if height >= 12.0 {
                self.text(
                    min + vec2(square.width() / 2.0, height / 2.0),
                    Align2::CENTER_CENTER,
                    &format!("thread {band}"),
                );
            }
        }
        let at = square.right_center() + vec2(14.0, 0.0);
        let more = if threads > shown { format!(" ({shown} drawn)") } else { String::new() };
        self.text(at - vec2(0.0, 10.0), Align2::LEFT_CENTER, &format!("{threads} threads{more},"));
        self.text(at + vec2(0.0, 8.0), Align2::LEFT_CENTER, "a band of rows each");
        vec![Home::Memory]
    }

    /// Draws the domain in tiles, one of them with its halo.
    fn tiles(&self, rect: Rect, domain: [usize; 2], tile: [usize; 2], halo: bool) -> Vec<Home> {
        let square = Rect::from_min_size(rect.min + vec2(4.0, 6.0), vec2(HEIGHT, HEIGHT - 12.0));
        // With more than a dozen tiles per side, their lines would be too close to be seen.
        let count: [usize; 2] = std::array::from_fn(|a| domain[a].div_ceil(tile[a].max(1)).clamp(1, 12));
        let size = vec2(square.width() / count[1] as f32, square.height() / count[0] as f32);
        let place = |row: usize, column: usize| {
            Rect::from_min_size(square.min + vec2(column as f32 * size.x, row as f32 * size.y), size)
        };
        for (row, column) in (0..count[0]).flat_map(|row| (0..count[1]).map(move |column| (row, column))) {
            self.block(place(row, column), Home::Memory.colour().gamma_multiply(0.8));
        }
        let one = place(count[0] / 2, count[1] / 2);
        if halo {
            self.painter.rect_filled(
                one.expand(4.0).intersect(square),
                CornerRadius::ZERO,
                Home::Halo.colour(),
            );
        }
        self.block(one, if halo { Home::Shared.colour() } else { Home::Memory.colour() });
        let at = square.right_center() + vec2(14.0, 0.0);
        self.text(
            at - vec2(0.0, 10.0),
            Align2::LEFT_CENTER,
            &format!("tiles of {}×{} cells,", tile[0], tile[1]),
        );
        self.text(at + vec2(0.0, 8.0), Align2::LEFT_CENTER, "a launch per stage and step");
        if halo { vec![Home::Shared, Home::Halo, Home::Memory] } else { vec![Home::Memory] }
    }

    /// Draws the planes of a tile and where each plane stays.
    fn sweep(&self, rect: Rect, registers: usize, shared: usize, planes: usize) -> Vec<Home> {
        let column = Rect::from_min_size(rect.min + vec2(24.0, 6.0), vec2(HEIGHT * 0.8, HEIGHT - 12.0));
        self.painter.rect_filled(column.expand(6.0).intersect(rect), CornerRadius::ZERO, Home::Halo.colour());
        let planes = planes.max(1);
        let shown = planes.min(32);
        let height = column.height() / shown as f32;
        for line in 0..shown {
            let plane = line * planes / shown;
            let home = if plane < registers {
                Home::Registers
            } else if plane < registers + shared {
                Home::Shared
            } else {
                Home::Memory
            };
            let min = column.min + vec2(0.0, line as f32 * height);
            self.block(Rect::from_min_size(min, vec2(column.width(), height)), home.colour());
        }
        let at = column.right_center() + vec2(18.0, 0.0);
        let rest = planes.saturating_sub(registers + shared);
        self.text(at - vec2(0.0, 28.0), Align2::LEFT_CENTER, &format!("{planes} planes of a tile:"));
        self.text(at - vec2(0.0, 10.0), Align2::LEFT_CENTER, &format!("{registers} in registers"));
        self.text(at + vec2(0.0, 8.0), Align2::LEFT_CENTER, &format!("{shared} in shared memory"));
        self.text(at + vec2(0.0, 26.0), Align2::LEFT_CENTER, &format!("{rest} in device memory"));
        vec![Home::Registers, Home::Shared, Home::Memory, Home::Halo]
    }

    /// Draws the stages of a window; each is narrower by the cells at its sides that turn wrong.
    fn stages(&self, rect: Rect, depth: usize, margin: f32, how: &str) -> Vec<Home> {
        let width = HEIGHT * 1.1;
        let shown = depth.clamp(1, 16);
        let height = (HEIGHT - 12.0) / (shown + 1) as f32;
        for stage in 0..=shown {
            let share = stage as f32 / shown as f32;
            let cut = width * (margin * share).min(0.45);
            let min = rect.min + vec2(4.0, 6.0 + stage as f32 * height);
            let whole = Rect::from_min_size(min, vec2(width, height - 2.0));
            self.painter.rect_filled(whole, CornerRadius::ZERO, Home::Halo.colour());
            let home = if stage == 0 { Home::Shared } else { Home::Registers };
            self.block(whole.shrink2(vec2(cut, 0.0)), home.colour());
        }
        let at = rect.min + vec2(width + 18.0, HEIGHT / 2.0);
        self.text(at - vec2(0.0, 10.0), Align2::LEFT_CENTER, &format!("{depth} steps per pass;"));
        self.text(at + vec2(0.0, 8.0), Align2::LEFT_CENTER, how);
        vec![Home::Shared, Home::Registers, Home::Halo]
    }
}
