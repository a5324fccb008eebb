use iced_x86::{Decoder, DecoderOptions, Formatter, IntelFormatter};
#[test]
fn dump() {
    let path = std::env::var("WASM").unwrap();
    let bytes = wat::parse_file(path).unwrap();
    let imports = wasm_record::Imports::parse("func host f i32 -> i32").unwrap();
    let t = wasm_translate::translate(&bytes, &imports, &[], &mut |_, _| {}).unwrap();
    let l = compose::link(&t, 0x10000, 0, [0x1000, 0x2000]).unwrap();
    let mut d = Decoder::with_ip(64, &l.text, l.text_address, DecoderOptions::NONE);
    let mut f = IntelFormatter::new();
    while d.can_decode() {
        let i = d.decode();
        let off = (i.ip() - l.text_address) as u32;
        if t.functions.contains(&off) || t.entries.contains(&off) { println!("---- {off:#x}") }
        let mut s = String::new();
        f.format(&i, &mut s);
        println!("{:x} {s}", i.ip());
    }
}
