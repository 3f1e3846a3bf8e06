// What the newest client of Node sends for the commands of Redis 8.8 and 8.10, and what it makes of
// the replies: newer_redis.mjs PORT RESP. Prints a map of names to what the calls gave, as JSON.
import { createClient } from 'redis';

const [port, protocol] = process.argv.slice(2).map(Number);
const client = createClient({ url: `redis://127.0.0.1:${port}`, RESP: protocol });
await client.connect();
await client.flushAll();

const said = {};
const note = async (name, call) => { said[name] = await call; };

await note('increx', client.increx('n', { by: 5, upperBound: 7, expiration: { type: 'EX', value: 100 } }));
await note('increx refused', client.increx('n', { by: 5, upperBound: 7 }));
await note('increx saturated', client.increx('n', { by: 5, upperBound: 7, saturate: true }));
await note('ttl', client.ttl('n'));

await client.sAdd('a', ['1', '2', '3']);
await client.sAdd('b', ['3', '4']);
await note('sunioncard', client.sUnionCard(['a', 'b']));
await note('sdiffcard', client.sDiffCard(['a', 'b']));

await client.rPush('from', ['1', '2', '3', '4']);
await note('lmovem', client.lMoveM('from', 'to', 'LEFT', 'LEFT', { COUNT: 2, ORDER: 'OBO' }));
await note('lmovem exactly', client.lMoveM('from', 'to', 'LEFT', 'LEFT', { EXACTLY: 3, ORDER: 'BULK' }));
await note('blmovem', client.blMoveM('from', 'to', 'LEFT', 'RIGHT', 1, { EXACTLY: 2, ORDER: 'BULK' }));

await client.xAdd('s', '1-0', { f: 'v' });
await client.xAdd('s', '2-0', { f: 'v' });
await client.xGroupCreate('s', 'g', '0');
await client.xReadGroup('g', 'c', { key: 's', id: '>' });
await note('xnack', client.xNack('s', 'g', 'FAIL', ['1-0', '9-0']));
await note('xread', client.xRead({ key: 's', id: '0' }, { MAXCOUNT: 1 }));

await note('arset', client.arSet('arr', 0, ['x', 'y', 'z']));
await note('arget', client.arGet('arr', 1));
await note('argetrange', client.arGetRange('arr', 2, 0));
await note('arscan', client.arScan('arr', 0, 9, { LIMIT: 2 }));
await note('argrep', client.arGrep('arr', '-', '+', [['RE', '^(x|z)$'], ['EXACT', 'none']], { COMBINATOR: 'OR' }));
await note('arring', client.arRing('ring', 2, ['a', 'b', 'c']));
await note('arlastitems', client.arLastItems('ring', 2));
await note('arinsert', client.arInsert('log', 'first'));
await note('arnext', client.arNext('log'));
await note('ardel', client.arDel('arr', 1));
await note('arlen', client.arLen('arr'));
await note('arcount', client.arCount('arr'));

console.log(JSON.stringify(said));
client.destroy();
