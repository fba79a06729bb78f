//! Compressions, one in another too, encodings and pipes: read, or named.

mod common;

use common::*;
use flashkeel_workload::trace::{DeviceSpaces, Fold};
use flashkeel_workload::{Compression, Trace};

const TEXT: &str =
    "128166372003061629,hm,1,Read,2449408,4096,3200\n128166372003061639,hm,1,Write,8192,1024,10\n";

fn utf16(text: &str, is_little: bool, has_mark: bool) -> Vec<u8> {
    let mark = has_mark.then_some(0xfeff);
    let units = mark.into_iter().chain(text.encode_utf16());
    units.flat_map(|unit| if is_little { unit.to_le_bytes() } else { unit.to_be_bytes() }).collect()
}

#[test]
fn every_compression_is_told_by_content() {
    let plain = replay(unaligned(file("p.csv", TEXT))).unwrap().0;
    let text = TEXT.as_bytes();
    for (contents, compression) in [
        (xz(text), Compression::Xz),
        ([xz(&text[..48]), xz(&text[48..])].concat(), Compression::Xz),
        (bzip2(text), Compression::Bzip2),
        ([bzip2(&text[..20]), bzip2(&text[20..])].concat(), Compression::Bzip2),
        (zip(&[text], true), Compression::Zip),
        (zip(&[text], false), Compression::Zip),
        (gzip(&zstd(text)), Compression::Gzip),
        (xz(&bzip2(&gzip(text))), Compression::Xz),
    ] {
        let trace = unaligned(file("p.csv", contents));
        assert_eq!(info(&trace).unwrap().compression, compression);
        assert_eq!(replay(trace).unwrap().0, plain);
    }
    let notes = info(&Trace::new(file("p.csv", gzip(&zstd(text))))).unwrap().notes;
    assert_eq!(notes, ["compressed more than once: Zstandard in gzip"]);
}

#[test]
fn large_files_are_unpacked_in_parts() {
    let lines: String = (0..100_000u64).map(|n| format!("{} 0 {} 8 1\n", n * 100_000, n * 8)).collect();
    let text = lines.as_bytes();
    for contents in [xz(text), bzip2(text), zip(&[text], true), utf16(&lines, true, true), gzip(&xz(text))] {
        let (arrivals, _) = replay(Trace::new(file("l.mqsim", contents))).unwrap();
        assert_eq!(arrivals.len(), 100_000);
        assert_eq!(arrivals[99_999].lba.0, 99_999 * 8);
    }
}

#[test]
fn text_may_have_a_mark_or_be_utf_16() {
    let plain = replay(unaligned(file("p.csv", TEXT))).unwrap().0;
    for contents in [
        format!("\u{feff}{TEXT}").into_bytes(),
        utf16(TEXT, true, true),
        utf16(TEXT, false, true),
        utf16(TEXT, true, false),
        utf16(TEXT, false, false),
        gzip(&utf16(TEXT, true, true)),
    ] {
        assert_eq!(replay(unaligned(file("p.csv", contents))).unwrap().0, plain);
    }
    let notes = info(&Trace::new(file("p.csv", utf16(TEXT, true, true)))).unwrap().notes;
    assert_eq!(notes, ["the text is in UTF-16"]);
    let named = "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime\n128166372003061629,größer😀,1,Read,0,4096,9\n";
    for at in 0..named.find('g').expect("it is there") {
        let text = named.replacen("größer", &format!("{}größer", "é".repeat(at % 3)), 1);
        let trace = Trace::new(file("p.csv", utf16(&text, at % 2 == 0, true)));
        assert_eq!(info(&trace).unwrap().notes[0], "the text is in UTF-16");
    }
    let mut cut = utf16(TEXT, true, true);
    cut.extend([b'1', 0, 0, 0xd8]);
    assert!(refusal(Trace::new(file("p.csv", cut))).starts_with("p.csv: "));
}

#[test]
fn what_is_not_read_is_named() {
    let refused = |contents: &[u8]| refusal(Trace::new(file("x", contents)));
    let mut tar = vec![0; 1024];
    tar[257..262].copy_from_slice(b"ustar");
    for (contents, expected) in [
        (&b"\x04\x22\x4d\x18rest of it"[..], "x: an LZ4 file; "),
        (b"7z\xbc\xaf\x27\x1crest", "x: a 7z archive; "),
        (b"Rar!\x1a\x07rest", "x: a RAR archive; "),
        (b"PAR1rest", "x: no Parquet file, or a damaged one: "),
        (&tar, "x: a tar archive; "),
        (&gzip(&tar), "x: a tar archive; "),
        (&zip(&[TEXT.as_bytes(), TEXT.as_bytes()], false), "x: a zip archive of several files; "),
        (&zip(&[], false), "x: neither text nor a known binary format"),
        (
            b"PK\x05\x06\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
            "x: a zip archive without a file in it",
        ),
        (&[0x81; 4000], "x: neither text nor a known binary format"),
        (b"\x00\x01\x02\x03\x04\x05\x06\x07 binary", "x: neither text nor a known binary format"),
    ] {
        let message = refused(contents);
        assert!(message.starts_with(expected), "{message}");
    }
    let mut deep = TEXT.as_bytes().to_vec();
    for _ in 0..5 {
        deep = gzip(&deep);
    }
    assert_eq!(refused(&deep), "x: compressed more than 4 times");
}

#[test]
fn damage_is_found_in_every_compression() {
    let text: Vec<u8> = (0..20_000).flat_map(|n| format!("{n} 0 {n} 8 1\n").into_bytes()).collect();
    for (name, whole) in [("t.xz", xz(&text)), ("t.bz2", bzip2(&text)), ("t.zip", zip(&[&text], false))] {
        let cut = refusal(Trace::new(file(name, &whole[..whole.len() / 2])));
        assert!(cut.contains("the compressed data is "), "{name}: {cut}");
        let mut damaged = whole.clone();
        damaged[whole.len() / 2] ^= 0x55;
        // What comes out of it may be wrong before its checksum is.
        let damaged = refusal(Trace::new(file(name, damaged)));
        assert!(
            damaged.contains("the compressed data is ") || damaged.contains("expected 5 fields"),
            "{damaged}"
        );
    }
}

/// A named pipe through which these bytes come once.
fn pipe(contents: &[u8]) -> std::path::PathBuf {
    let path = file("pipe", "").with_file_name("trace.fifo");
    assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    let (end, contents) = (path.clone(), contents.to_vec());
    // Who reads may stop early.
    std::thread::spawn(move || std::fs::write(end, contents));
    path
}

#[test]
fn a_pipe_is_read_once() {
    let expected = replay(unaligned(file("p.csv", TEXT))).unwrap().0;
    for contents in [TEXT.as_bytes().to_vec(), gzip(TEXT.as_bytes()), xz(TEXT.as_bytes())] {
        assert_eq!(replay(unaligned(pipe(&contents))).unwrap().0, expected);
        assert_eq!(info(&Trace::new(pipe(&contents))).unwrap().requests, 2);
    }
}

#[test]
fn what_takes_two_passes_says_so_of_a_pipe() {
    let two = "0 1 0 8 1\n5 2 0 8 0\n";
    let message = replay(Trace::new(pipe(two.as_bytes()))).unwrap_err().to_string();
    assert!(
        message.contains("trace.fifo:2: a second device") && message.contains("devices = \"merge\""),
        "{message}"
    );
    let merged = Trace { devices: DeviceSpaces::Merge, ..Trace::new(pipe(two.as_bytes())) };
    assert_eq!(replay(merged).unwrap().0.len(), 2);
    let chosen = Trace { device: Some("2".into()), ..Trace::new(pipe(two.as_bytes())) };
    assert_eq!(replay(chosen).unwrap().0.len(), 1);
    let path = file("pipe", "").with_file_name("nobody.fifo");
    assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    for (key, trace) in [
        ("repeat", Trace { repeat: 2, ..Trace::new(&path) }),
        ("fold", Trace { fold: Fold::Compact, ..Trace::new(&path) }),
    ] {
        let message = replay(trace).unwrap_err().to_string();
        assert!(message.starts_with(&format!("workload.source.{key}: ")), "{message}");
        assert!(message.contains("a pipe cannot be"), "{message}");
    }
}

/// A record of a folder in a zip archive.
fn folder() -> Vec<u8> {
    let mut record = b"PK\x03\x04\x14\x00".to_vec();
    record.extend([0; 20]);
    record.extend(b"\x02\x00\x00\x00d/");
    record
}

#[test]
fn a_folder_around_a_file_is_passed_over() {
    let packed = [folder(), zip(&[TEXT.as_bytes()], false)].concat();
    assert_eq!(info(&Trace::new(file("x.zip", packed))).unwrap().requests, 2);
    let empty = [b"PK\x05\x06".to_vec(), vec![0; 18]].concat();
    let refused = refusal(Trace::new(file("x.zip", empty)));
    assert!(refused.contains("a zip archive without a file in it"), "{refused}");
}

#[test]
fn what_is_empty_is_called_so() {
    for (name, contents) in
        [("e.bz2", bzip2(b"")), ("le.csv", b"\xff\xfe".to_vec()), ("be.csv", b"\xfe\xff".to_vec())]
    {
        assert_eq!(refusal(Trace::new(file(name, contents))), format!("{name}: the file is empty"));
    }
}

#[test]
fn other_packings_are_named() {
    for (contents, expected) in [
        (&b"\x78\x9cmore"[..], "a zlib stream"),
        (b"\x5d\x00\x00\x80\x00more", "the old LZMA format"),
        (b"\x02\x21\x4c\x18more", "an LZ4 file of the legacy format"),
        (b"\x89LZO\x00\r\n\x1a\nmore", "an LZO file"),
        (b"\xff\x06\x00\x00sNaPpYmore", "a Snappy stream"),
    ] {
        let refused = refusal(Trace::new(file("x", contents)));
        assert!(refused.contains(expected), "{refused}");
    }
}

#[test]
fn what_follows_compressed_data_is_named() {
    let text = TEXT.as_bytes();
    for (compression, whole) in [
        ("gzip", gzip(text)),
        ("gzip", [gzip(&text[..20]), gzip(&text[20..])].concat()),
        ("bzip2", bzip2(text)),
        ("Zstandard", zstd(text)),
    ] {
        for rest in [&b"garbage garbage"[..], b"\n", &[0; 512]] {
            let refused = refusal(Trace::new(file("x", [&whole[..], rest].concat())));
            let expected = format!("x: its {compression} data is followed by bytes that are none; ");
            assert!(refused.starts_with(&expected), "{refused}");
        }
    }
    let refused = refusal(Trace::new(file("x", [&xz(text)[..], b"garbage garbage"].concat())));
    assert!(refused.ends_with("invalid data after stream"), "{refused}");
}
