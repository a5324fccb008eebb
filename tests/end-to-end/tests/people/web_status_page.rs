//! The live status page in a real browser: it draws, and refreshes itself.

use std::time::Duration;

use end_to_end::{Site, client};

test_needs::needs!(Chromium);

/// The page after this many milliseconds of the browser's virtual time.
#[track_caller]
fn page(site: &Site, milliseconds: u32) -> String {
    let profile = tempfile::tempdir().expect("a folder");
    let arguments = [
        "--headless".into(),
        "--no-sandbox".into(),
        "--disable-gpu".into(),
        "--no-proxy-server".into(),
        "--window-size=1280,800".into(),
        format!("--user-data-dir={}", profile.path().display()),
        format!("--virtual-time-budget={milliseconds}"),
        "--dump-dom".into(),
        site.url("/status/"),
    ];
    let run = client("chromium", arguments, Duration::from_secs(60));
    assert_eq!(run.status, Some(0), "{run}");
    run.text()
}

/// The text of the element with this name.
fn text<'a>(page: &'a str, id: &str) -> &'a str {
    let rest = page.split_once(&format!("id=\"{id}\"")).and_then(|(_, rest)| rest.split_once('>'));
    rest.and_then(|(_, rest)| rest.split_once('<')).map_or("", |(text, _)| text)
}

/// Figures of a service with many restarts fit its box.
#[test]
fn long_figures_are_squeezed_into_their_box() {
    const MAX_FREE_CHARACTERS: usize = 24;
    let folder = tempfile::tempdir().expect("a folder");
    let mut site = Site::serve(folder.path());
    for _ in 0..12 {
        site.live.ask("kill host-sockets");
        std::thread::sleep(Duration::from_millis(300));
    }
    let drawn = page(&site, 3000);
    let figures = drawn.split("<text class=\"small\"").skip(1).filter_map(|rest| rest.split_once("</text>"));
    let figures: Vec<(&str, &str)> = figures.filter_map(|(text, _)| text.split_once('>')).collect();
    let is_long = |text: &str| text.chars().count() > MAX_FREE_CHARACTERS;
    assert!(figures.iter().any(|(_, text)| is_long(text)), "none is long: {figures:?}");
    for (attributes, text) in figures {
        assert_eq!(attributes.contains("textLength=\"130\""), is_long(text), "{text}:{attributes}");
    }
    site.end();
}

#[test]
fn the_page_draws_the_system_and_goes_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut site = Site::serve(folder.path());
    let before = site.in_use(&["/status/", "/status/status.json"]);
    let drawn = page(&site, 5000);
    for name in ["web-server", "web-status", "host-sockets", "ext2-fs", "file-disk", "service-manager"] {
        assert!(drawn.contains(&format!(">{name}")), "there is no box of {name} in:\n{drawn}");
    }
    for contract in ["WebApplication", "TcpListener", "Disk", "FileSystem"] {
        assert!(drawn.contains(&format!(">{contract}")), "there is no channel of {contract} in:\n{drawn}");
    }
    let boxes = drawn.matches("class=\"box").count();
    assert_eq!(text(&drawn, "processes"), boxes.to_string(), "in the head, and drawn");
    assert_eq!(text(&drawn, "lost"), "");
    // The page sends a request each second of the browser's time.
    let log = |site: &mut Site| site.live.ask("cat /fs/disk1/access.log").matches("/status/status.json").count();
    std::thread::sleep(Duration::from_millis(1500));
    let looks = log(&mut site);
    assert!(looks >= 4, "only {looks} looks in five seconds:\n{drawn}");
    site.is_as_before(&before, &["/status/", "/status/status.json"], 20);
    site.end();
}
