//! Settings remembered from one start to the next. The system's side of the window remembers the window's
//! place.

use egui::ThemePreference;
use serde::{Deserialize, Serialize};

use super::state::{State, Tab};
use crate::field::look::Look;
use crate::setup::Setup;

/// The key in the storage.
const KEY: &str = "abide";

/// The settings remembered.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Memory {
    /// The last scene.
    pub setup: Option<Setup>,
    /// The look of the last scene.
    pub look: Look,
    /// The page beside the field.
    pub tab: Tab,
    /// Light or dark: `None` follows the system.
    pub dark: Option<bool>,
    /// The folder in which files are kept.
    pub folder: String,
}

impl Memory {
    /// Collects the settings of a state; where there is no run, the last scene stays.
    pub fn of(state: &State, theme: ThemePreference, before: &Memory) -> Memory {
        let running = state.run.as_ref();
        Memory {
            setup: running.map(|_| state.draft.clone()).or_else(|| before.setup.clone()),
            look: if running.is_some() { state.look.clone() } else { before.look.clone() },
            tab: state.tab,
            dark: match theme {
                ThemePreference::Dark => Some(true),
                ThemePreference::Light => Some(false),
                ThemePreference::System => None,
            },
            folder: state.folder.folder.clone(),
        }
    }

    /// Reads the stored settings. Text that cannot be read, as that of another version, is forgotten.
    pub fn read(storage: Option<&dyn eframe::Storage>) -> Memory {
        let text = storage.and_then(|storage| storage.get_string(KEY));
        text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
    }

    /// Writes the settings.
    pub fn write(&self, storage: &mut dyn eframe::Storage) {
        if let Ok(text) = serde_json::to_string(self) {
            storage.set_string(KEY, text);
        }
    }

    /// Returns the theme that is remembered.
    pub fn theme(&self) -> ThemePreference {
        match self.dark {
            Some(true) => ThemePreference::Dark,
            Some(false) => ThemePreference::Light,
            None => ThemePreference::System,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[derive(Default)]
    struct Shelf(HashMap<String, String>);

    impl eframe::Storage for Shelf {
        fn get_string(&self, key: &str) -> Option<String> {
            self.0.get(key).cloned()
        }
        fn set_string(&mut self, key: &str, value: String) {
            self.0.insert(key.to_owned(), value);
        }
        fn remove_string(&mut self, key: &str) {
            self.0.remove(key);
        }
        fn flush(&mut self) {}
    }

    #[test]
    fn what_is_stored_comes_back_and_rubbish_is_forgotten() {
        let mut shelf = Shelf::default();
        assert_eq!(Memory::read(Some(&shelf)), Memory::default());
        let memory = Memory { setup: Some(Setup::model("life")), dark: Some(false), ..Memory::default() };
        memory.write(&mut shelf);
        assert_eq!(Memory::read(Some(&shelf)), memory);
        shelf.0.insert(KEY.to_owned(), "{\"setup\": 7}".to_owned());
        assert_eq!(Memory::read(Some(&shelf)), Memory::default());
    }

    #[test]
    fn the_last_scene_outlives_a_visit_to_the_gallery() {
        let before = Memory { setup: Some(Setup::model("wave")), ..Memory::default() };
        let memory = Memory::of(&State::default(), ThemePreference::System, &before);
        assert_eq!(memory.setup, before.setup);
    }
}
