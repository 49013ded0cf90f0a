//! Bodies that decode to many times their size.

use std::io::Write;

use brotli::enc::BrotliEncoderParams;

pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Gzip members of about a mebibyte in total that decode to about a gibibyte of zeros.
pub fn gzip_bomb() -> Vec<u8> {
    let member = gzip(&vec![0; 16 * 1024 * 1024]);
    member.repeat(1024 * 1024 / member.len())
}

/// Zeros for a decoder with a window of two to the power of `window` bytes. A window beyond 24 is not part of RFC 7932,
/// whose streams never begin like this one does then.
pub fn brotli_bomb(window: i32, mebibytes: usize) -> Vec<u8> {
    let params = BrotliEncoderParams {
        quality: 5,
        lgwin: window,
        large_window: window > 24,
        ..BrotliEncoderParams::default()
    };
    let mut out = Vec::new();
    let zeros = vec![0; 1024 * 1024];
    {
        let mut writer = brotli::CompressorWriter::with_params(&mut out, 4096, &params);
        for _ in 0..mebibytes {
            writer.write_all(&zeros).unwrap();
        }
    }
    out
}
