// The desk of a page: its host is the server from which the page came.

const address = new URL("ws", location.href);
address.protocol = "ws:";
address.search = location.search;
let receive = () => null;
let socket = null;
let pause = 250; // milliseconds to the next attempt

/** Connect, and again when the server was away. */
function connect() {
  socket = new WebSocket(address);
  socket.onmessage = (event) => {
    pause = 250;
    receive(JSON.parse(event.data));
  };
  socket.onclose = () => {
    receive({ kind: "state", text: "not connected" });
    setTimeout(connect, pause);
    pause = Math.min(2 * pause, 8000);
  };
}

mountDesk(document.getElementById("desk"), {
  send: (message) => socket?.readyState === WebSocket.OPEN && socket.send(JSON.stringify(message)),
  receive: (act) => (receive = act),
});
connect();
