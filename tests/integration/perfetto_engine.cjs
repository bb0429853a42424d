// Loads a trace into Perfetto's own trace processor and runs queries over it.
//
//     node perfetto_engine.cjs FOLDER TRACE < QUERIES > ANSWERS
//
// FOLDER holds engine_bundle.js and trace_processor.wasm, as ui.perfetto.dev serves them. QUERIES: a
// JSON list of SQL; ANSWERS: {"error": text of the load or "", "answers": [{"error", "rows"}]}.
// The bundle is a Web Worker; it gets the few globals of one here. Messages are protobuf, by
// protos/perfetto/trace_processor/trace_processor.proto.
'use strict';
const fs = require('fs');
const path = require('path');

const APPEND = 1, FINALIZE = 2, QUERY = 3;
const PIECE = 32 * 1024 * 1024;

function varint(number) {
  const bytes = [];
  let left = BigInt(number);
  for (; left > 127n; left >>= 7n) bytes.push(Number(left & 127n) | 128);
  bytes.push(Number(left));
  return Buffer.from(bytes);
}
const field = (number, bytes) =>
  Buffer.concat([varint((number << 3) | 2), varint(bytes.length), bytes]);
const whole = (number, value) => Buffer.concat([varint(number << 3), varint(value)]);

function* fieldsOf(bytes) {
  let at = 0;
  const next = () => {
    let value = 0n, shift = 0n;
    for (;;) {
      const one = bytes[at++];
      value |= BigInt(one & 127) << shift;
      if (one < 128) return value;
      shift += 7n;
    }
  };
  while (at < bytes.length) {
    const tag = Number(next());
    if ((tag & 7) === 0) yield [tag >> 3, next()];
    else if ((tag & 7) === 1) { yield [tag >> 3, bytes.subarray(at, at + 8)]; at += 8; }
    else if ((tag & 7) === 5) { yield [tag >> 3, bytes.subarray(at, at + 4)]; at += 4; }
    else { const size = Number(next()); yield [tag >> 3, bytes.subarray(at, at + size)]; at += size; }
  }
}

function* varintsOf(bytes) {  // packed
  let value = 0n, shift = 0n;
  for (const one of bytes) {
    value |= BigInt(one & 127) << shift;
    shift += 7n;
    if (one < 128) { yield BigInt.asIntN(64, value); value = 0n; shift = 0n; }
  }
}

function readBatch(batch, columns, cells) {
  let kinds = [], wholes = [], floats = Buffer.alloc(0), texts = [];
  let last = false;
  for (const [number, value] of fieldsOf(batch)) {
    if (number === 1) kinds = [...varintsOf(value)].map(Number);
    else if (number === 2) wholes = [...varintsOf(value)].map(Number);
    else if (number === 3) floats = value;
    else if (number === 5) texts = value.toString().split('\0');
    else if (number === 6) last = value === 1n;
  }
  let w = 0, f = 0, t = 0;
  for (const kind of kinds) {
    if (kind === 2) cells.push(wholes[w++]);
    else if (kind === 3) { cells.push(floats.readDoubleLE(f)); f += 8; }
    else if (kind === 4) cells.push(texts[t++]);
    else cells.push(null);
  }
  return last;
}

async function main() {
  const [folder, trace] = process.argv.slice(2);
  const queries = JSON.parse(fs.readFileSync(0, 'utf8'));
  const worker = { location: { href: 'http://127.0.0.1/engine_bundle.js' } };
  class FileRequest {  // the bundle reads its .wasm by a synchronous request
    open(_, name) { this.name = path.basename(name); }
    send() {
      const file = fs.readFileSync(path.join(folder, this.name));
      this.response = file.buffer.slice(file.byteOffset, file.byteOffset + file.length);
    }
  }
  const quiet = { log() {}, warn() {}, error() {}, debug() {}, info() {} };
  const bundle = fs.readFileSync(path.join(folder, 'engine_bundle.js'), 'utf8');
  const given = {
    self: worker, location: worker.location, WorkerGlobalScope: Object, importScripts() {},
    XMLHttpRequest: FileRequest, console: quiet,
    process: undefined,  // else it takes itself to be in node, which it is not built for
  };
  new Function(...Object.keys(given), bundle)(...Object.values(given));
  await new Promise(setImmediate);  // its module is there once its promise is

  let waiting = null;
  const port = { postMessage: (bytes) => waiting(Buffer.from(bytes)) };
  let sequence = 0;
  const ask = (body, isDone) => new Promise((resolve, reject) => {
    const replies = [];
    waiting = (bytes) => {
      for (const [, one] of fieldsOf(bytes)) {
        const reply = [...fieldsOf(one)];
        const fatal = reply.find(([number]) => number === 5);
        if (fatal) { reject(new Error(fatal[1].toString())); return; }
        replies.push(reply);
        if (isDone(reply)) resolve(replies);
      }
    };
    const message = field(1, Buffer.concat([whole(1, sequence++), body]));
    port.onmessage({ data: new Uint8Array(message) });
  });
  worker.onmessage({ data: port });

  let loadError = '';
  const data = fs.readFileSync(trace);
  for (let at = 0; at < data.length && !loadError; at += PIECE) {
    const piece = data.subarray(at, at + PIECE);
    const replies = await ask(
      Buffer.concat([whole(2, APPEND), field(101, piece)]), () => true);
    loadError = errorOf(replies[0], 201, 2);
  }
  if (!loadError) {
    const replies = await ask(whole(2, FINALIZE), () => true);
    loadError = errorOf(replies[0], 209, 2) || errorOf(replies[0], 201, 2);
  }
  const answers = [];
  for (const sql of loadError ? [] : queries) {
    let columns = [], error = '';
    const cells = [];
    const take = (reply) => {
      for (const [number, value] of reply) {
        if (number !== 203) continue;
        let last = false;
        for (const [inner, part] of fieldsOf(value)) {
          if (inner === 1) columns.push(part.toString());
          else if (inner === 2) error = part.toString();
          else if (inner === 3) last = readBatch(part, columns, cells) || last;
        }
        return last || error !== '';
      }
      return false;
    };
    await ask(
      Buffer.concat([whole(2, QUERY), field(103, field(1, Buffer.from(sql)))]), take);
    const rows = [];
    for (let at = 0; at < cells.length; at += columns.length) {
      rows.push(cells.slice(at, at + columns.length));
    }
    answers.push({ error, columns, rows });
  }
  const text = JSON.stringify({ error: loadError, answers });
  await new Promise((done) => process.stdout.write(text, done));
}

function errorOf(reply, holder, inner) {
  const held = reply.find(([number]) => number === holder);
  if (!held) return '';
  const found = [...fieldsOf(held[1])].find(([number]) => number === inner);
  return found && Buffer.isBuffer(found[1]) ? found[1].toString() : '';
}

main().then(() => process.exit(0), (error) => { console.error(error); process.exit(1); });
