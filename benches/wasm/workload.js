// What `cargo sing bench wasm` has QuickJS do. Prints one line.

function fibonacci(n) {
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

function primes(limit) {
    const isNone = new Uint8Array(limit);
    let count = 0;
    for (let n = 2; n < limit; n++) {
        if (isNone[n]) continue;
        count++;
        for (let multiple = n * 2; multiple < limit; multiple += n) isNone[multiple] = 1;
    }
    return count;
}

class Account {
    #balance = 0;
    constructor(name) {
        this.name = name;
    }
    pay(amount) {
        this.#balance += amount;
        return this;
    }
    get balance() {
        return this.#balance;
    }
}

function accounts(count) {
    const all = new Map();
    for (let n = 0; n < count; n++) {
        const name = `account ${(n * 7919) % 997}`;
        if (!all.has(name)) all.set(name, new Account(name));
        all.get(name).pay(n % 13).pay(-(n % 5));
    }
    return [...all.values()].sort((one, other) => other.balance - one.balance || (one.name < other.name ? -1 : 1));
}

function words(count) {
    let text = "";
    for (let n = 0; n < count; n++) text += "lorem ipsum ".slice(0, n % 12) + n.toString(36) + " ";
    const found = text.match(/[a-f]+[0-9]{2}/g).length;
    return found + text.split(" ").filter((word) => word.length > 4).map((word) => word.toUpperCase()).join("").length;
}

function matrix(side) {
    const row = (n) => Array.from({ length: side }, (_, m) => ((n * 31 + m * 17) % 23) / 4);
    const [left, right] = [Array.from({ length: side }, (_, n) => row(n)), Array.from({ length: side }, (_, n) => row(n + 5))];
    let sum = 0;
    for (let i = 0; i < side; i++)
        for (let j = 0; j < side; j++)
            for (let k = 0; k < side; k++) sum += left[i][k] * right[k][j];
    return sum;
}

const list = accounts(60000);
const copy = JSON.parse(JSON.stringify(list.slice(0, 500).map(({ name, balance }) => ({ name, balance }))));
console.log("result", fibonacci(25), primes(400000), list[3].name, copy.length, copy[9].balance, words(20000), matrix(80));
